"""Models for the workers of Ray, which import nothing of the tests."""


def model_in(log):
    """What makes a model in each worker; it notes by process what it was asked, and fails once."""

    def make():
        import os
        import re

        from dspy_rerank.testing import scripted_lm

        def say(prompt):
            query = re.findall(r"query-\d+", prompt)[-1]
            with open(f"{log}/{os.getpid()}.asked", "a", encoding="utf-8") as file:
                file.write(query + "\n")
            if query == "query-13":
                raise TimeoutError("the model does not answer")
            labels = sorted({int(label) for label in re.findall(r"\[(\d+)\]", prompt)})
            return " > ".join(f"[{label}]" for label in reversed(labels))

        return scripted_lm(say, num_retries=0, latency=0.02)

    return make
