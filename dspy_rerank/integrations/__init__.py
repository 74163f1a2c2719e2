"""Rerankers inside other frameworks, one module each; nothing is imported before you ask for it.

``llama_index``, ``langchain``, ``haystack`` and ``pyterrier`` put a reranker into a pipeline,
``retriever`` into a DSPy program; ``opentelemetry`` and ``mlflow`` trace rankings, ``progress``
draws bars; ``ray`` ranks whole data sets on one machine or many.
"""
