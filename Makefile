# make demo   train, evaluate and tag with the bundled corpus
# make test   run the first tier of the tests, in minutes
# make test-all  run all tests
# make lint   check style, types and spelling
# make bench  measure against peers (hours; interrupt it freely, it goes on where it was)
# make experiments  re-run the paper's experiments (hours; interrupt it freely)
# make site   build the documentation as a site, into build/site
# make screenshots  take the pictures of the page of laso serve for the documents
# make load   ask the page's server for predictions at a rate, while one client teaches
# make readme put the output of the first two into README.md
# Each sets up .venv the first time; nothing but Python 3.11+ and make is assumed.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed
READY := .venv/ready
BROWSER := build/browser/ready
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
PYTEST := $(BIN)/pytest --numprocesses auto --dist worksteal

.PHONY: demo test test-all test-rest lint screenshots load format readme site clean bench experiments

demo: $(INSTALLED)
	@$(BIN)/laso demo

test: $(READY)
	@$(PYTEST) -m "not slow" $(TESTS)

test-all: $(READY) $(BROWSER)
	@$(PYTEST) $(TESTS)

test-rest: $(READY) $(BROWSER)
	@$(PYTEST) -m slow $(TESTS)

lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/codespell

bench: $(READY)
	@$(PIP) install --editable '.[bench]'
	@$(BIN)/python -m studies bench $(BENCH)
	@$(BIN)/python tools/figures.py

experiments: $(READY)
	@$(PIP) install --editable '.[lists,plots]'
	@BIN=$(BIN) sh tools/experiments.sh $(EXPERIMENTS)
	@$(BIN)/python tools/figures.py

format: $(READY)
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

readme: $(READY)
	@$(BIN)/python tools/readme.py
	@$(BIN)/python tools/picture.py

screenshots: $(BROWSER)
	@PYTHONPATH=. $(BIN)/python tools/screenshots.py

load: $(READY)
	@$(BIN)/python tools/load_test.py $(LOAD)

site: $(READY)
	@$(PIP) install --editable '.[site]'
	@$(BIN)/mkdocs build --strict

$(READY): $(INSTALLED)
	@echo "installing what tests need (once) ..."
	@$(PIP) install --editable '.[dev]'
	@touch $@

# Tests of the page need Debian's Chromium (apt-get install chromium); without it they are skipped.
$(BROWSER): $(READY)
	@echo "installing what tests of the page need (once) ..."
	@$(PIP) install --editable '.[browser]'
	@mkdir -p $(@D)
	@npm install --silent --no-audit --no-fund --prefix $(@D) axe-core@4 || echo "no axe-core: its checks are skipped"
	@touch $@

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("laso needs Python 3.11 or newer, found %d.%d; try: make PYTHON=/path/to/python3.11" % v[:2])'
	@echo "setting up .venv (once) ..."
	@$(PYTHON) -m venv .venv
	@$(PIP) install --no-compile --editable .  # modules are compiled when they are imported
	@touch $@

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage build dist
