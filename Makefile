# From a fresh clone to the book. Needs make, git and Python 3.11 or later; `make help` lists the rest.

# The interpreter for .venv, as in `make PYTHON=python3.12`; of several, the first that serves.
PYTHON ?= python3.13 python3.12 python3.11 python3

# The rules of the Snakefile call their commands by name, so the environment leads the PATH.
in_venv = PATH="$(CURDIR)/.venv/bin:$$PATH"

# What these ask of Python is meant for other programs: docstrings are printed in the artifacts.
unexport PYTHONOPTIMIZE PYTHONWARNINGS

# The last words of a build that failed are what was wrong. Make adds none if it is told to quit while
# the recipe still runs; where that signal is ignored, as of a job in the background, make tells too.
without_a_word = { \
  if { sh -c 'ulimit -c 0; kill -QUIT $$$$'; } 2>/dev/null; then exit 1; fi; \
  kill -QUIT $$PPID; sleep 1; \
}

.PHONY: all live notebook pdf test test-long test-browser chromium test-notebook test-cluster slurm \
  slurmd quick bench clean help

all: .venv/project.stamp ## make everything that is stale: artifacts, figures, tables, the book
	$(in_venv) snakemake all --cores all || $(without_a_word)

live: .venv/project.stamp ## the page in a browser, built again at each save; PORT=8001 for another port
	$(in_venv) mlsysim live $(if $(PORT),--port $(PORT))

# Jupyter refuses to run as root unless it is told to.
notebook: .venv/notebook.stamp ## the chapters as notebooks in JupyterLab; PORT=8889 for another port
	$(in_venv) JUPYTER_CONFIG_PATH="$(CURDIR)/.jupyter" jupyter lab \
	  $(if $(PORT),--port $(PORT)) $(if $(filter 0,$(shell id -u)),--allow-root)

pdf: all ## the book for print, build/pdf/book.pdf; installs Debian's TeX where it may
	@packages=$$($(in_venv) python -c "from mlsysim.book.site import printed_book; \
	  print(*(printed_book.PACKAGES if printed_book.missing() else ()))") && \
	if [ -n "$$packages" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update --quiet=2 && \
	  DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --yes --no-install-recommends $$packages; \
	fi
	$(in_venv) mlsysim book --pdf
	$(in_venv) pytest --quiet -m print

test: .venv/project.stamp ## lint, types, every artifact solved again, the whole test suite
	$(in_venv) ruff check
	$(in_venv) ruff format --check
	$(in_venv) snakefmt --check Snakefile
	$(in_venv) mypy
	$(in_venv) mlsysim verify
	$(in_venv) mlsysim check
	$(in_venv) pytest --numprocesses auto -m "not browser and not print and not notebook and not cluster"

test-long: .venv/project.stamp ## every property with new examples: EXAMPLES=3000 for more than 600, SEED=1 to repeat
	@seed=$(or $(SEED),$$(date +%s)); echo "The seed is $$seed: make test-long SEED=$$seed draws the same."; \
	$(in_venv) EXAMPLES=$(or $(EXAMPLES),600) pytest --numprocesses auto -m hypothesis \
	  --hypothesis-profile long --hypothesis-seed $$seed tests

test-browser: all chromium ## the built book in headless Chromium: cards, links, accessibility
	$(in_venv) pytest -m browser tests/browser

# A browser comes from the system: where this may install it, it does, and elsewhere says how.
chromium:
	@command -v chromium > /dev/null && exit; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	  apt-get update --quiet --quiet && DEBIAN_FRONTEND=noninteractive \
	    apt-get install --quiet --yes --no-install-recommends chromium fonts-liberation; \
	else \
	  echo "The browser tests need Chromium: as root, apt-get install chromium" >&2; \
	  exit 1; \
	fi

test-notebook: all chromium .venv/notebook.stamp ## chapters run, edited and saved in JupyterLab, and as VS Code does
	$(in_venv) pytest -m notebook tests/notebook

test-cluster: all slurm slurmd ## the book through a Slurm of two nodes on this host, which ends with the test; as root it installs Debian's
	$(in_venv) pytest -m cluster tests/cluster

slurm: .venv/slurm.stamp ## Snakemake's executor for a Slurm cluster; profiles/slurm/README.md says how to use it

slurmd:
	@packages=$$($(in_venv) python tests/cluster/slurm.py --missing); \
	if [ -n "$$packages" ] && [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	  apt-get update --quiet=2 && DEBIAN_FRONTEND=noninteractive \
	    apt-get install --quiet=2 --yes --no-install-recommends $$packages; \
	fi

quick: .venv/project.stamp ## the tests that take milliseconds: all but those that execute chapters, lay out pages or start a process
	$(in_venv) pytest --numprocesses auto --ignore tests/browser --ignore tests/pipeline \
	  -m "not slow and not print and not notebook and not cluster"

bench: .venv/project.stamp ## start-up, no-op, solver and book times beside their goals
	$(in_venv) python tests/bench.py

clean: ## remove what is generated and not versioned; .venv stays
	rm -rf build .snakemake

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1: /p' Makefile

# The stamp is a copy of the lock that was installed: one that was only touched, or switched to and
# fro, installs nothing; a library that was changed by hand is told and set right. An environment
# does not survive a move of its folder. The stamp is written last, so an interrupted set-up starts
# again from nothing.
# Interpreters are tried, not looked up: a name on the PATH may be a stub that only prints an error.
.venv/requirements.stamp: requirements.lock FORCE
	@cmp -s $< $@ && [ "$$(cat .venv/location)" = "$(CURDIR)" ] \
	  && MLSYSIM_ROOT="$(CURDIR)" .venv/bin/python -m mlsysim.runtime.environment && exit; found=; \
	for python in $(PYTHON); do \
	  $$python -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	    && found=$$python && break; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "No Python 3.11 or later with venv and ensurepip among: $(PYTHON)." \
	    "Name one: make PYTHON=/path/to/python" >&2; \
	  exit 1; \
	fi; \
	echo "Setting up .venv with $$($$found --version) from $<; this takes a minute." && \
	$$found -m venv --clear .venv && \
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r $< && \
	.venv/bin/python -m pip check --disable-pip-version-check && \
	echo "$(CURDIR)" > .venv/location && \
	cp $< $@

FORCE:

# The metadata that setuptools leaves beside the sources would be found a second time at run time.
.venv/project.stamp: .venv/requirements.stamp pyproject.toml
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check \
	  --no-deps --no-build-isolation --editable . && \
	rm -rf mlsysim.egg-info && \
	.venv/bin/python -m compileall -q --invalidation-mode checked-hash mlsysim && \
	touch $@

# What few need has a lock of its own. The executor for Slurm slows every start of Snakemake by a
# fifth of a second, and JupyterLab is sixty megabytes.
.venv/notebook.stamp .venv/slurm.stamp: .venv/%.stamp: requirements-%.lock .venv/project.stamp
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r $< && \
	.venv/bin/python -m pip check --disable-pip-version-check && \
	touch $@
