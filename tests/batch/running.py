"""The same queries by a job and by live calls."""

import json

import dspy

import dspy_rerank as dr


def live(path, config, reranker=None):
    """The rankings of live calls, by query id."""
    reranker, found = reranker or dr.TopDown(dr.ListwiseJudge()), {}
    lm = dr.models.load(config)["judge"].copy(cache=False)
    with dspy.context(lm=lm):
        for line in path.read_text().splitlines():
            record = json.loads(line)
            found[record["id"]] = reranker(record["query"], record["documents"]).ranking
    lm.engine.close()
    return found


def as_run(rankings):
    return "".join(ranking.to_trec(name) for name, ranking in rankings.items())


def begun(tmp_path, queries, config, program=None, **given):
    return dr.batch.begin(tmp_path / "state", queries, program, lm="judge", config=config, **given)


def waited(tmp_path, queries, config, program=None, **given):
    """A job that has ended."""
    job = begun(tmp_path, queries, config, program, **given)
    job.wait(every=0)
    return job


def run_of(job, tmp_path):
    job.write(tmp_path / "run.trec")
    return (tmp_path / "run.trec").read_text()
