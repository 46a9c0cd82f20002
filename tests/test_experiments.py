"""The paper's experiments: jobs and resumption, choosing, claims, reports."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import laso
import studies
from laso import LasoError
from laso.engine.options import is_exact
from studies import __main__ as command_line
from studies import report, runner, training
from studies.measure import JobFailed, Processes, Row, Stopped, load
from studies.paper import table1
from studies.runner import Lab, Pace, Request, experiment
from tests.fake_experiment import EXPERIMENT as FAKE

ROOT = Path(__file__).parents[1]
COMMAND = [
    sys.executable,
    "-c",
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from studies import EXPERIMENTS; EXPERIMENTS['fake'] = 'tests.fake_experiment'; "
    "from studies.__main__ import main; raise SystemExit(main())",
]
KEYS = {"row", "features", "resources", "seed", "precision", "recall", "f", "epochs"}
KEYS |= {"train_s", "test_s", "peak_mb"}


@pytest.fixture(autouse=True)
def log(tmp_path, monkeypatch):
    """What the fake estimator was asked to do, by all processes."""
    path = tmp_path / "log"
    path.touch()
    monkeypatch.setenv("FAKE_LOG", str(path))
    monkeypatch.setitem(studies.EXPERIMENTS, "fake", "tests.fake_experiment")
    return path


def jobs_in(log):
    """The jobs so far, less those that only see to it that code is compiled."""
    found = [json.loads(line) for line in log.read_text().splitlines()]
    return [tuple(job) for job in found if job[0] != "warm"]


class Listener:
    def __init__(self, interrupt_after=None):
        self.ended, self.failed = [], []
        self.interrupt_after = interrupt_after
        self.interrupted = False

    def __call__(self, line):
        if "FAILED" in line:
            self.failed.append(line)
            return
        (ended,) = re.findall(r"^(.*) \((\d+) of (\d+), about (.*) left\)$", line)
        self.ended.append(ended)
        if len(self.ended) == self.interrupt_after:
            self.interrupted = True
            raise KeyboardInterrupt


class Here(Processes):
    """Does jobs in this process, for speed; the command's own tests have real processes."""

    def __init__(self, work, listener):
        super().__init__(work)
        self.listener = listener

    def run(self, call, job):
        assert call == runner.RUN_JOB
        if self.listener.interrupted:
            raise Stopped
        try:
            result = training.run_job(json.loads(json.dumps(job, default=str)))
            return json.loads(json.dumps(result))
        except (LasoError, ValueError) as error:
            raise JobFailed(str(error)) from error


def lab(tmp_path, listener=None, jobs=1):
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    listener = listener or Listener()
    made = Lab(FAKE, tmp_path / "results", work, listener, jobs=jobs)
    made._processes = Here(work, listener)
    return made


def request(**given):
    usual = {"rows": ("one", "exact"), "features": "paper", "seeds": (0, 1), "corpus": "bundled"}
    return Request(**{**usual, **given})


def command(tmp_path, *arguments):
    given = ["--corpus", "bundled", "--results", str(tmp_path / "results")]
    return [*COMMAND, "fake", *given, *arguments]


def ran(tmp_path, *arguments):
    return subprocess.run(
        command(tmp_path, *arguments), cwd=ROOT, capture_output=True, text=True, check=False
    )


# --------------------------------------------------------------------------- jobs


def test_settings_and_epochs_are_chosen_on_held_out_data_and_used(tmp_path, log):
    results = lab(tmp_path).run(request(seeds=(0,)))
    # The margin of 1 is better, first so after 2 epochs; without it 2 epochs are best as well.
    assert jobs_in(log) == [
        ("trial", 1, 0, FAKE.epochs),
        ("trial", 1, 0, FAKE.epochs),
        ("trial", 99, 0, FAKE.epochs),
        ("final", 1, 0, 2),
        ("final", 99, 0, 2),
    ]
    chosen = load(tmp_path / "results" / "chosen.json")["fake"]
    one = chosen["one, paper, no resources"]
    assert one["settings"] == {"queue": 1, "margin": 1.0, "epochs": 2}
    assert [trial["f"] for trial in one["trials"]] == pytest.approx([60.0, 70.0])
    assert [result["settings"] for result in results] == [
        one["settings"],
        {"queue": "exact", "epochs": 2},
    ]
    assert results[0]["held_out"] == pytest.approx([50.0, 70.0, 70.0])


def test_an_experiment_without_tests_ends_with_the_held_out_scores(tmp_path, log):
    only = replace(FAKE, tests=False)
    first = lab(tmp_path)
    first.experiment = only
    assert first.run(request(rows=("exact",))) == []
    assert jobs_in(log) == [("trial", 99, 0, FAKE.epochs)]
    first.run(request(rows=("exact",)))
    assert len(jobs_in(log)) == 1
    assert first.choices()["exact, paper, no resources"]["f"] == pytest.approx(60.0)


def test_results_have_the_keys_promised_and_the_order_of_the_table(tmp_path):
    results = lab(tmp_path, jobs=2).run(request(resources=("lexicon",)))
    assert load(tmp_path / "results" / "fake.json") == results
    assert [(one["row"], one["seed"]) for one in results] == [
        ("one", 0),
        ("one", 1),
        ("exact", 0),
        ("exact", 1),
    ]
    for result in results:
        assert result.keys() >= KEYS | {"cpu_s", "held_out", "versions", "settings", "machine"}
        assert result["resources"] == ["lexicon"]
        assert result["train_s"] >= 0
        assert result["peak_mb"] > 1
    assert results[3]["f"] == pytest.approx(99.91)


@pytest.mark.parametrize("after", [1, 3, 4, 6])
def test_a_run_that_was_interrupted_does_only_what_is_missing(tmp_path, log, after):
    with pytest.raises(KeyboardInterrupt):
        lab(tmp_path, Listener(interrupt_after=after)).run(request())
    assert len(jobs_in(log)) == after
    results = lab(tmp_path).run(request())
    assert len(results) == 4
    done = jobs_in(log)
    assert len(done) == 7
    assert len([job for job in done if job[0] == "trial"]) == 3
    assert len({job for job in done if job[0] == "final"}) == 4
    assert lab(tmp_path).run(request()) == results
    assert len(jobs_in(log)) == 7


def test_more_seeds_or_other_features_are_added_and_again_means_all(tmp_path, log):
    first = lab(tmp_path).run(request(rows=("exact",), seeds=(0,)))
    more = lab(tmp_path).run(request(rows=("exact",), seeds=(0, 1)))
    assert more[0] == first[0]
    assert len(jobs_in(log)) == 3
    lab(tmp_path).run(request(rows=("exact",), seeds=(0,), features="rich"))
    assert len(jobs_in(log)) == 5
    assert len(lab(tmp_path).all_results()) == 3
    lab(tmp_path).run(request(rows=("exact",), seeds=(0,), again=True))
    assert len(jobs_in(log)) == 7
    assert len(lab(tmp_path).all_results()) == 3


def test_other_settings_chosen_since_make_a_result_be_measured_again(tmp_path, log):
    asked = request(rows=("exact",), seeds=(0,))
    lab(tmp_path).run(asked)
    path = tmp_path / "results" / "chosen.json"
    chosen = load(path)
    chosen["fake"]["exact, paper, no resources"]["settings"]["epochs"] = 1
    path.write_text(json.dumps(chosen))
    (result,) = lab(tmp_path).run(asked)
    assert result["epochs"] == 1
    assert jobs_in(log)[2:] == [("final", 99, 0, 1)]


def test_what_fails_is_told_and_the_rest_goes_on(tmp_path):
    listener = Listener()
    there = lab(tmp_path, listener)
    results = there.run(request(rows=("broken", "exact"), seeds=(0,)))
    assert [one["row"] for one in results] == ["exact"]
    assert there.failures == ["choosing for broken"]
    assert "this row always fails" in listener.failed[0]


def test_a_training_that_was_interrupted_is_no_result(tmp_path):
    there = lab(tmp_path)
    assert there.run(request(rows=("exact",), seeds=(7,))) == []
    assert there.failures == ["exact, seed 7"]


def test_the_progress_counts_all_jobs_and_estimates_the_rest(tmp_path):
    listener = Listener()
    lab(tmp_path, listener).run(request())
    assert [int(done) for _, done, _, _ in listener.ended] == list(range(1, 8))
    assert {total for _, _, total, _ in listener.ended} == {"7"}
    assert listener.ended[-1][3] == "0 s"


def test_the_time_left_goes_by_row_and_by_processes():
    pace = Pace(jobs=2)
    for row in ("quick", "slow", "new"):
        pace.expect(row, 3)
    assert pace.left_s() is None
    pace.took("quick", 1.0)
    pace.finish("quick")
    pace.took("slow", 9.0)
    pace.took("slow", 11.0)
    pace.finish("slow")
    # Two quick ones, two slow ones, three as the others are on average; two at a time.
    assert pace.left_s() == pytest.approx((2 * 1 + 2 * 10 + 3 * 5.5) / 2)
    assert (pace.done, pace.total) == (2, 9)


def test_processes_tell_why_they_failed_and_can_be_stopped(tmp_path):
    processes = Processes(tmp_path)
    with pytest.raises(JobFailed, match="No module named 'nonesuch'"):
        processes.run("nonesuch:run", {})
    processes.stop()
    with pytest.raises(Stopped):
        processes.run(runner.RUN_JOB, {})
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


# --------------------------------------------------------------------------- settings


def test_plain_settings_become_queue_update_and_strategy():
    made = training.parameters(
        {"queue": 5, "update": "alma", "alpha": 0.5, "B": "1/alpha", "epochs": 3}
        | {"weighting": "worst"}
    )
    assert made["update"] == laso.alma(alpha=0.5, B=2.0, weighting=laso.worst)
    assert made["queue"] == 5  # what that means is for the estimator to say
    assert (made["strategy"], made["epochs"]) == (laso.restart, 3)
    theorem = {"queue": 1, "update": "alma", "alpha": 0.9, "B": "sqrt(8)/alpha", "epochs": 1}
    assert training.parameters(theorem)["update"].b == laso.alma(alpha=0.9).b
    exact = training.parameters({"queue": "exact", "strategy": "standard", "epochs": 1})
    assert is_exact(exact["queue"])
    assert (exact["update"], exact["strategy"]) == (laso.perceptron(), laso.standard)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"update": "nonesuch"}, "nonesuch"), ({"update": "perceptron", "alpha": 1.0}, "alpha")],
)
def test_settings_that_do_not_exist_are_refused(wrong, message):
    with pytest.raises(LasoError, match=message):
        training.parameters({"queue": 1, "epochs": 1, **wrong})


def test_every_row_of_table_1_is_one_that_the_estimator_takes():
    assert list(table1.ROWS) == [row for row in table1.PAPER if row != "ZDJ02"]
    for config in table1.ROWS.values():
        for name, values in config.grid.items():
            assert config.settings[name] == values[0]  # else _trials miscounts
            for value in values:
                made = training.parameters({**config.settings, name: value, "epochs": 1})
                table1.chunker()(**made).validate()


@pytest.mark.parametrize("path", sorted(ROOT.glob("*/results/*.md")), ids=lambda path: path.name)
def test_the_reports_kept_list_nothing_that_was_not_measured(path):
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("|"):
            assert "not measured" not in line
            assert "no result for" not in line
            assert line.count("| - ") < 2, line


# --------------------------------------------------------------------------- the command


def test_the_command_answers_with_the_results_and_tells_what_has_ended(tmp_path):
    shown = ran(tmp_path, "--rows", "exact", "--seeds", "2")
    assert shown.returncode == 0
    assert [line.split(": ")[0].split(" ", 1)[1] for line in shown.stderr.splitlines()] == [
        "exact, queue exact",
        "exact, seed 0",
        "exact, seed 1",
    ]
    assert "(3 of 3, about 0 s left)" in shown.stderr
    lines = shown.stdout.splitlines()
    assert [line.split()[:3] for line in lines[:3]] == [
        ["row", "seed", "f"],
        ["exact", "0", "99.90"],
        ["exact", "1", "99.91"],
    ]
    assert (tmp_path / "results" / "fake.md").read_text() == "2 results, 1 choices\n"
    shown = ran(tmp_path, "--rows", "exact", "--seed", "1", "--json")
    (result,) = json.loads(shown.stdout)
    assert result["seed"] == 1


def test_a_failure_exits_with_1_and_its_reason(tmp_path):
    shown = ran(tmp_path, "--rows", "broken", "--seed", "0")
    assert shown.returncode == 1
    assert "this row always fails" in shown.stderr
    assert shown.stderr.endswith("failed: choosing for broken\n")


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent in another way there")
def test_ctrl_c_ends_the_processes_and_keeps_what_is_finished(tmp_path, log):
    given = ["--rows", "exact", "--jobs", "2"]
    assert ran(tmp_path, *given, "--seeds", "1").returncode == 0
    with subprocess.Popen(
        command(tmp_path, *given, "--seed", "5"), cwd=ROOT, stderr=subprocess.PIPE, text=True
    ) as process:
        while ("final", 99, 5, 2) not in jobs_in(log):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.startswith("interrupted: finished results are saved")
    assert "FAILED" not in errors
    assert [one["seed"] for one in load(tmp_path / "results" / "fake.json")] == [0]


def test_a_process_ends_with_the_one_that_started_it(tmp_path, log):
    started = (
        "import os, subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-m', 'studies.worker', *sys.argv[1:]])\n"
        "while not os.path.getsize(os.environ['FAKE_LOG']): time.sleep(0.05)\n"
    )
    job: Row = {"module": "tests.fake_experiment", "settings": {"queue": 1, "epochs": 1}}
    job |= {"call": runner.RUN_JOB, "features": "paper", "resources": [], "seed": 5, "train": "x"}
    (tmp_path / "job.json").write_text(json.dumps(job))
    subprocess.run(
        [sys.executable, "-c", started, str(tmp_path / "job.json"), str(tmp_path / "result.json")],
        cwd=ROOT,
        capture_output=True,
        check=True,
        timeout=60,  # the job would take longer, and holds the pipes as long as it runs
    )
    assert jobs_in(log) == [("final", 1, 5, 1)]
    assert not (tmp_path / "result.json").exists()


def status_of(arguments):
    try:
        return command_line.main(arguments)
    except SystemExit as error:
        return error.code


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["table9"], "table9"),
        (["table1", "--rows", "LaSOp_1,LaSOx"], "LaSOx"),
        (["table1", "--features", "poor"], "poor"),
        (["table1", "--resources", "clusters,nonesuch"], "nonesuch"),
        (["table1", "--corpus", "nonesuch"], "nonesuch"),
        (["table1", "--jobs", "0"], "--jobs"),
    ],
)
def test_what_cannot_be_run_exits_with_2_and_says_what_can(arguments, named, tmp_path, capsys):
    assert status_of([*arguments, "--results", str(tmp_path / "results")]) == 2
    assert named in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


def test_without_the_corpus_the_command_says_where_to_get_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LASO_DATA", str(tmp_path / "nowhere"))
    given = ["table1", "--results", str(tmp_path / "results")]
    assert command_line.main(given) == 5
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("studies: the corpus conll2000 was not found")
    assert "LASO_DATA" in shown.err
    # A report of what is there needs no corpus.
    assert command_line.main([*given, "--report"]) == 0
    assert capsys.readouterr().err == ""
    assert (tmp_path / "results" / "table1.md").exists()


def test_lists_is_short_for_the_papers_lists(tmp_path):
    own = tmp_path / "own.txt"
    own.write_text("word\n")
    expected = ("abbreviations", "clusters", "names", "places", "stop-words")
    names_in, resources_of = command_line.names_in, command_line.resources_of
    assert resources_of(names_in("lists, clusters")) == expected
    assert resources_of(names_in(f"{own},{own}")) == (str(own),)
    assert resources_of(names_in("")) == ()


def test_trials_of_experiments_do_not_get_among_the_real_results():
    folders = set()
    for corpus in ("conll2000", "bundled"):
        for quick in (False, True):
            asked = Request(rows=(), features="paper", corpus=corpus, quick=quick)
            folders.add(command_line.default_folder(asked))
    assert len(folders) == 4
    assert ROOT / "experiments" / "results" in folders


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (89, "89 s"), (100, "2 min"), (9000, "2.5 h")]
)
def test_durations(seconds, text):
    assert runner.duration(seconds) == text


# --------------------------------------------------------------------------- the real thing


def test_a_slice_of_table_1_with_the_real_estimator(tmp_path):
    given = ["--quick", "--corpus", "bundled", "--rows", "LaSOp_1", "--seed", "0", "--json"]
    shown = subprocess.run(
        [*COMMAND, "table1", *given, "--results", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
    )
    assert shown.returncode == 0, shown.stderr
    (result,) = json.loads(shown.stdout)
    assert result.keys() >= KEYS
    assert 80 < result["f"] < 100
    assert report.harmonic(result["precision"], result["recall"]) == pytest.approx(result["f"])
    assert result["epochs"] == result["settings"]["epochs"] <= 2
    assert "| LaSOp_1 | **1** |" in (tmp_path / "table1.md").read_text()
    assert experiment("table1") is table1.EXPERIMENT
