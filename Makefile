# The project's commands. Each target makes `.venv` first if it is missing or stale; nothing needs
# activating. Paths are relative and modules run with `-m`, so a checkout path may hold spaces.

PYTHON ?= python3
SEEDS ?=
JOBS ?= 2
ARGS ?=
QUICK ?=

VENV := .venv
EXTRA := test
PEERS := .venv-peers
DOCS := .venv-docs
OLDEST := .venv-oldest
SITE := docs/_build/html
RUN := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed

# Of the calling shell's settings only what steers this project comes in.
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP VIRTUAL_ENV __PYVENV_LAUNCHER__
unexport PIP_TARGET PIP_PREFIX PIP_USER PIP_ROOT PYTEST_ADDOPTS PYTEST_PLUGINS
export KERAS_BACKEND := tensorflow
export MPLBACKEND := Agg
TF_CPP_MIN_LOG_LEVEL ?= 2
export TF_CPP_MIN_LOG_LEVEL

# An environment belongs to one interpreter and one folder: the stamp, written last, names both.
# Without PYTHON= the environment's own interpreter is asked, so that any good one stays.
IDENTITY := import os, sys; print(sys.version.split()[0], sys.base_prefix, os.getcwd())
ASKED := $(if $(filter file,$(origin PYTHON)),$(RUN),$(PYTHON))
STALE := $(shell "$(ASKED)" -I -c '$(IDENTITY)' 2>/dev/null | cmp -s - $(INSTALLED) || echo stale)

.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help all theory table1 table2 figure1 figure2 figure3 figure4 figure5 figure6 figure7 figure8 \
    section61 readings exact estimators figures report report-check verify reference benchmark profile peers networks scaling map \
    test check oldest docs docs-check venv dist clean stale

help: ## Print this list.
	@echo 'make TARGET [SEEDS="0 1 2"] [JOBS=2] [QUICK=1] [ARGS="..."] [PYTHON=python3]'
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile

# What `make check` tests: one step against the oracles or by hand, for each part.
CORE := tests/test_arrows.py tests/docs/test_check_numbers.py \
    tests/lerh_tf/exact/test_subspace.py tests/lerh_tf/loss/test_objective.py \
    $(addprefix tests/lerh_tf/, test_checks.py test_noise.py test_schedules.py) \
    tests/lerh_tf/kernels/test_against_oracles.py \
    tests/lerh_tf/optimizers/test_local_entropy.py::test_the_next_weights_are_the_mean \
    $(addprefix tests/reproduce/, claims test_cli.py test_drawing.py test_protocols.py \
    test_readings.py test_records.py test_runner.py test_summary.py test_tables.py)

# What trains or measures: seeds, runs at a time, and the small budget of QUICK=1.
MAKING = $(if $(SEEDS),--seeds $(SEEDS)) $(if $(JOBS),--jobs $(JOBS)) $(if $(QUICK),--quick) $(ARGS)

all: $(INSTALLED) ## Make every table, figure and theorem of the paper, as far as not made yet.
theory: $(INSTALLED) ## Measure the theorems, statement by statement.
table1: $(INSTALLED) ## Train on MNIST by every method, print Table 1, draw Figure 4.
figure4: $(INSTALLED) ## The same as table1.
figure5: $(INSTALLED) ## Train by SGD first, then by every method.
figure6: $(INSTALLED) ## Train with 10, 100 and 1000 samples per weight update.
figure7: $(INSTALLED) ## Train the small network at small to large tau.
figure8: $(INSTALLED) ## Train with constant and scoped tau.
section61: $(INSTALLED) ## Train both networks for 5 epochs by SGD.
readings: $(INSTALLED) ## Train under other readings of the text: hours per seed.
exact: $(INSTALLED) ## Train by Algorithms 1 and 2 with accurate means beside Table 1's methods.
all theory table1 figure4 figure5 figure6 figure7 figure8 section61 readings exact:
	$(RUN) -m reproduce $@ $(MAKING)

estimators: $(INSTALLED) ## Compare the estimators of the mean, train with accurate means.
	$(RUN) -m benchmarks.estimators $(MAKING)

table2: $(INSTALLED) ## Time a weight update of every method, one run at a time.
	$(RUN) -m reproduce table2 $(if $(QUICK),--quick) $(ARGS)

figure1: $(INSTALLED) ## Draw Figure 1: local entropy of a toy landscape.
figure2: $(INSTALLED) ## Draw Figure 2: heat regularization of a toy landscape.
figure3: $(INSTALLED) ## Draw Figure 3: mean-seeking and mode-seeking Gaussians.
figures: $(INSTALLED) ## Draw every table and figure, by the reference run where no records are.
report: $(INSTALLED) ## Draw everything and write what holds on one page, results/report.html.
figure1 figure2 figure3 figures report:
	$(RUN) -m reproduce $@ $(ARGS)

report-check: report ## Open the page in headless Chromium, which has to be there: light, dark, phone.
	@$(MAKE) --no-print-directory venv VENV=$(DOCS) EXTRA=docs,release
	$(DOCS)/bin/python -m tests.report_check results/report.html results/pictures

verify: $(INSTALLED) ## Recompute a part of the committed reference run and compare.
	$(RUN) -m reproduce verify $(if $(JOBS),--jobs $(JOBS)) $(ARGS)

reference: $(INSTALLED) ## Copy the records of everything into the reference run.
	$(RUN) -m reproduce reference $(if $(SEEDS),--seeds $(SEEDS)) $(ARGS)

benchmark: $(INSTALLED) ## Time the plain kernels beside loops written by hand.
	$(RUN) -m benchmarks.plain $(ARGS)

profile: $(INSTALLED) ## Time what a weight update consists of (QUICK=1: a small budget).
	$(RUN) -m benchmarks.profile $(if $(QUICK),--quick) $(ARGS)

peers: ## Race the weight updates against other libraries', in .venv-peers (QUICK=1: a small budget).
	@$(MAKE) --no-print-directory venv VENV=$(PEERS) EXTRA=peers
	$(PEERS)/bin/python -m benchmarks.peers $(if $(QUICK),--quick) $(ARGS)

scaling: $(INSTALLED) ## Time weight updates on one and two replicas, and model a thousand.
	$(RUN) -m benchmarks.scaling $(if $(QUICK),--quick) $(ARGS)

networks: ## Race them on networks that are not the paper's, in .venv-peers.
	@$(MAKE) --no-print-directory venv VENV=$(PEERS) EXTRA=peers
	$(PEERS)/bin/python -m benchmarks.peers.networks $(ARGS)

map: $(INSTALLED) ## Measure what it is good for, beside the rivals: hours, in batches of any size.
	$(RUN) -m examples.map $(if $(JOBS),--jobs $(JOBS)) $(if $(QUICK),--quick) $(ARGS)

test: $(INSTALLED) ## Check style and types, run every test (ARGS go to pytest).
check: $(INSTALLED) ## The same with a fast core of the tests: a minute, for every change.
test check:
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(RUN) -m pytest -n logical --maxprocesses 4 --dist loadfile $(if $(filter check,$@),$(CORE) )$(ARGS)

# Each requirement at its lower bound; matplotlib 3.9 warns under a newer pyparsing. The wheel of
# Keras 3.13 does not ship Keras's own tests, of which the page of what works tells too.
NOT_OLDEST := --ignore tests/lerh_tf/keras_suite --ignore tests/test_keras_page.py
oldest: ## Run the tests with the oldest versions that setup.cfg allows, in .venv-oldest.
	@sed -n '/^install_requires/,/^\[/s/^ *\([a-z0-9_-]*\)>=\([^,]*\),.*/\1==\2/p' setup.cfg > $(OLDEST).txt
	@echo 'pyparsing<3.3' >> $(OLDEST).txt
	@PIP_CONSTRAINT=$(OLDEST).txt $(MAKE) --no-print-directory venv VENV=$(OLDEST)
	$(OLDEST)/bin/python -m pytest -n logical --maxprocesses 4 --dist loadfile $(NOT_OLDEST) $(ARGS)

docs: ## Build the site into docs/_build/html and check it, in .venv-docs (QUICK=1: a small budget).
	@$(MAKE) --no-print-directory venv VENV=$(DOCS) EXTRA=docs,release
	@rm -rf $(SITE) docs/gallery
	$(if $(QUICK),QUICK=1) $(DOCS)/bin/python -m sphinx -q -W --keep-going -b html $(ARGS) docs $(SITE)
	$(DOCS)/bin/python docs/check_built.py $(SITE)

docs-check: ## Open each page of the built site in headless Chromium, which has to be there.
	@test -x $(DOCS)/bin/python || { echo 'make docs comes first' >&2; exit 2; }
	$(DOCS)/bin/python docs/check_in_browser.py $(SITE) $(ARGS)

venv: $(INSTALLED) ## Make or renew the environment in .venv.
	@echo '$(RUN) is ready'

dist: ## Build and check a release's sdist and wheel, into dist/, in .venv-docs.
	@$(MAKE) --no-print-directory venv VENV=$(DOCS) EXTRA=docs,release
	@rm -rf build dist
	$(DOCS)/bin/python -m build --quiet
	$(DOCS)/bin/python -m twine check --strict dist/*

clean: ## Remove the environment, caches and builds; results and prepared data stay.
	rm -rf $(VENV) $(PEERS) $(DOCS) $(OLDEST) $(OLDEST).txt docs/_build docs/gallery build dist *.egg-info
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Two at a time would spoil each other's installation: the second waits, and then finds it done.
# The lock is the operating system's, held by the make that installs, gone when that ends.
LOCKED := import fcntl, os, sys; lock = os.open("Makefile", os.O_RDWR); \
    os.set_inheritable(lock, True); fcntl.flock(lock, fcntl.LOCK_EX); \
    os.execvp(sys.argv[1], sys.argv[1:])

ifndef HOLDS_LOCK
$(INSTALLED): setup.cfg pyproject.toml $(STALE)
	@"$(PYTHON)" -I -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || { \
	    echo 'PYTHON=$(PYTHON) is not Python 3.11, 3.12 or 3.13: name one, PYTHON=python3.12' >&2; \
	    exit 1; }
	@echo 'Getting $(VENV) ready (a few minutes the first time) ...'
	@"$(PYTHON)" -I -c '$(LOCKED)' $(MAKE) --no-print-directory HOLDS_LOCK=1 $(INSTALLED)
else
# Only after the last install ended well is the environment kept and brought up to date.
$(INSTALLED): setup.cfg pyproject.toml $(STALE)
	@test -z '$(STALE)' || "$(PYTHON)" -m venv --clear $(VENV)
	@rm -f $(INSTALLED)
	@$(RUN) -m pip install -qq --disable-pip-version-check --editable '.[$(EXTRA)]'
	@$(RUN) -I -c '$(IDENTITY)' > $(INSTALLED).part
	@mv $(INSTALLED).part $(INSTALLED)
endif
