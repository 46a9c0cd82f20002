"""Compiled kernels are kept between runs of the tests, apart from the user's own cache."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# The second tier (make test-all): what takes long, and what other tests show in small.
SLOW = {
    "test_benchmarks": "measurements beside other programs",
    "test_engine_lattice": "exact search, compared with all paths",
    "test_experiments": "the experiments of the studies",
    "test_plots": "pictures of the studies",
    "test_scale": "growth of time and memory",
    "test_clusters": "joblib, Dask and Ray, and workers that die",
    "test_install": "wheel, source archive and extras in empty environments",
    "test_encoders_torch": "encoders by torch, where that is installed",
    "test_engine_faults": "broken promises of problems at every call",
    "faults/test_kills": "processes that are killed",
    "faults/test_threads": "many threads at once",
    "test_fuzz::test_a_short_campaign_finds_nothing": "fuzzing",
    "test_engine_machine::test_the_kernels_as_plain_python": "kernels as plain Python",
    "test_engine_machine::test_no_index_is_out_of_bounds": "checks of array bounds",
    "faults/test_injection": "a fault at every call of an operation",
    "faults/test_interrupts": "Ctrl-C and other signals while compiled code runs",
    "test_fuzz::test_a_late_campaign_finds_nothing": "own problems that break promises late",
    "test_fuzz::test_a_semantic_campaign_finds_nothing": "extreme numbers and texts in files",
    "test_chains": "the likelihood of chains, compared with that of their lattices",
    "test_chunker::test_exact_search_learns_with_every_update": "exact search of segments",
    "test_chunker::test_probabilities_of_chunks_are_those_of_all_segmentations": "exact search",
    "test_chunker::test_weights_are_averaged_unless_the_likelihood_is_climbed": "exact search",
    "test_documents::test_python_in_documents_runs": "all Python in the documents",
    "test_exact_tagger::test_lbfgs_goes_on_to_the_same_maximum": "L-BFGS, interrupted and resumed",
    "test_problem_checks::test_no_mistake_reaches_compiled_code": "dry runs of wrong problems",
    "test_engine_compile::test_an_edit_anywhere_compiles_again": "compilation after edits",
    "test_engine_compile::test_two_processes_compile_into_one_empty_cache": "two processes at once",
    "test_crf::test_one_tagger_until_the_next_fit": "taggers of a CRF",
    "test_engine_compile::test_problems_from_the_cache_do_not_mix": "the cache, many problems",
    "test_input_kinds::test_a_task_of_ones_own_does_not_mix_strings_and_numbers": "own tasks",
    "test_own_task_cli::test_a_module_in_the_current_folder": "own tasks, from a folder",
    "test_own_tasks::test_marginals_of_exact_search": "own tasks, exact search",
    "test_single::test_chains_equal_lattices_also_where_paths_are_equally_good": "chains, lattices",
    "test_engine_equality::test_every_queue_and_strategy[max_violation]": "full decodings",
    "test_engine_equality::test_every_queue_and_strategy[standard]": "full decodings",
    "test_engine_native::test_a_second_process_needs_no_numba": "processes that load machine code",
    "test_engine_native::test_all_processors_learn_the_same_weights": "code for other processors",
    "test_explanation::test_the_weights_of_the_decisions_sum_to_the_score": "every task explained",
    "test_input_kinds::test_weights_and_scores_that_overflow_are_no_failed_search": "overflow",
    "test_own_task_cli::test_settings_of_the_estimator": "a task of one's own with every option",
    "test_own_task_cli::test_warmup_takes_names_tasks_and_problems": "compilation ahead of time",
    "test_own_tasks::test_queues_updates_and_strategies": "own tasks, every queue and update",
    "test_engine_machine::test_growing_arrays_change_nothing": "arrays that grow at every call",
    "test_model_format::test_ten_thousand_damaged_files_are_answered_with_one_clear_error": (
        "ten thousand damaged files"
    ),
    "test_parsing::test_lifting_takes_bounded_time": "growth of lifting",
    "test_robustness::test_several_processes_read_one_model_while_it_is_saved_again": (
        "several processes"
    ),
    "faults/test_forks": "forks while threads work",
    "test_page": "the page of laso serve in a browser",
}

os.environ.setdefault("LASO_CACHE", str(ROOT / ".pytest_cache" / "laso-kernels"))


@pytest.fixture
def laso(monkeypatch, capsysbinary):
    """The command line, to be called with its arguments."""
    from tests.commands import Laso  # after the cache is set

    return Laso(monkeypatch, capsysbinary)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with a few sentences to train and to test on."""
    from laso.data import load_bundled, write_columns  # after the cache is set

    train, test = load_bundled()
    monkeypatch.chdir(tmp_path)
    write_columns("train.txt", train[:60])
    write_columns("test.txt", test[:20])
    return tmp_path


def pytest_configure(config: pytest.Config) -> None:
    """Compile what most tests use, if all files run in several processes."""
    workers = getattr(config.option, "numprocesses", None)
    everything = config.args_source is config.ArgsSource.TESTPATHS
    if workers and everything and not hasattr(config, "workerinput"):
        from tests.precompile import in_parallel

        in_parallel(int(workers))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the second tier; in it, what takes longest comes first."""
    for item in items:
        file = item.path.relative_to(ROOT / "tests").with_suffix("").as_posix()
        name, _, parameters = f"{file}::{item.name}".partition("[")
        last = parameters.rpartition("-")[2]
        if {file, name, f"{name}[{last}"} & SLOW.keys():
            item.add_marker("slow")
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
