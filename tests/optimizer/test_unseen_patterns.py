"""The cost model on traces and patterns that nothing of it was fitted to: estimates rank plans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from tests.optimizer.test_costs import rank_correlation
from tests.optimizer.traces import Selected, selected
from tests.optimizer.trees import estimated_nodes, random_order, random_tree
from uncertain_cep.executor import execute
from uncertain_cep.operators.counters import Counters
from uncertain_cep.optimizer.cost_model import CostModel
from uncertain_cep.optimizer.measuring import measure
from uncertain_cep.plan.trees import Tree
from uncertain_cep.traces import load_schema, read_traces
from uncertain_cep.traces.cluster import cluster_trace, write_cluster

DATASETS = Path(__file__).parents[2] / "datasets"
PLANS = 30


@dataclass(frozen=True, slots=True)
class Unseen:
    """A pattern over a trace: of the simulated cluster, or a file of the real ones and its schema."""

    query: str
    file: str = ""
    schema: str = ""


UNSEEN = (
    Unseen(
        """
        PATTERN SEQ(TaskStart a, Fetch b, Cpu c, MapFinish d)
        WHERE a.taskId = d.taskId AND b.nodeId = d.nodeId AND c.nodeId = d.nodeId AND c.value > 60%
        WITHIN 4 seconds
        """
    ),
    Unseen(
        """
        PATTERN SEQ(ShuffleEnd a, AttemptFailed b, AttemptStart c, AttemptFailed d)
        WHERE a.host = b.host AND c.task_id = b.task_id AND b.job_id = d.job_id AND c.attempt > 0
        WITHIN 5 seconds
        """,
        "yahoo_hadoop_2009_skew",
        "yahoo_hadoop/schema.toml",
    ),
    Unseen(
        """
        PATTERN SEQ(TaskStart a, TaskEnd b, TaskStart c, TaskEnd d)
        WHERE b.task_id = a.task_id AND d.task_id = c.task_id AND c.executor = b.executor AND b.failed = TRUE
        WITHIN 300 milliseconds
        """,
        "spark_eventlogs/raw/gpu_oom_eventlog.zstd",
        "spark_eventlogs/schema.toml",
    ),
)


@pytest.fixture(scope="module")
def unseen(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Selected, CostModel]]:
    """The selection of each pattern, and the cost model of it by the sample that plans rest on."""
    folder = tmp_path_factory.mktemp("cluster")
    write_cluster(folder / "trace", cluster_trace(6, 4, 77))
    cases = []
    for each in UNSEEN:
        file = shared_data / each.file if each.file else folder / "trace"
        schema = load_schema(DATASETS / (each.schema or "cluster/schema.toml"))
        chosen = selected(each.query, read_traces([file], schema))
        cases.append(
            (chosen, CostModel.of(chosen.plan, measure(chosen.plan, chosen.table, chosen.selection)))
        )
    return cases


def partial_matches(case: Selected, tree: Tree) -> float:
    """Return how many the engine has along a tree."""
    counters = Counters()
    plan = replace(case.plan, planner="given", tree=tree, match_windows=False)
    for _ in execute(plan, case.table, counters=counters):
        pass
    return float(sum(counters.nodes.values()))


@pytest.mark.parametrize("draw", [random_order, random_tree])
def test_estimates_rank_plans_for_patterns_that_they_were_not_fitted_to(
    draw: Callable[[np.random.Generator, int], Tree], unseen: list[tuple[Selected, CostModel]]
) -> None:
    """Thirty random plans of one kind, ten for each of three patterns, by the sample that plans rest on."""
    rng = np.random.default_rng(61)
    estimates: list[float] = []
    counts: list[float] = []
    for case, model in unseen:
        for _ in range(PLANS // len(UNSEEN)):
            tree = draw(rng, model.length)
            estimates.append(sum(estimated_nodes(model, tree).values()))
            counts.append(partial_matches(case, tree))
    assert len(estimates) == PLANS
    assert rank_correlation(estimates, counts) >= 0.8
