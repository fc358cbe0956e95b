# `make` alone says what there is. Works with GNU make 3.81 and any POSIX shell; needs Python 3.11 or newer, nothing else.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTHONS := $(PYTHON) python3.13 python3.12 python3.11 python3 python
RUN = $(if $(DIR),$(DIR),data/runs/web)

.PHONY: help crawl test check format docs bench soak venv constraints clean

help:
	@echo 'make crawl                 crawl a generated web on this machine; nothing leaves it'
	@echo 'make crawl SEEDS=FILE      crawl from a file of URLs (or from URLs: SEEDS="https://... https://...")'
	@echo '           DIR=FOLDER      where the run lives (data/runs/web); the same command again resumes it'
	@echo '           ARGS="..."      more arguments for scrapy crawl, e.g. ARGS="-s WEBCRAWL_LIMIT_PAGES=100"'
	@echo 'make test                  the whole gate: style, types, imports, all tests, on all cores'
	@echo 'make check                 style, types and imports only'
	@echo 'make format                lay out the code and sort the imports'
	@echo 'make docs                  write docs/settings.md from webcrawl/core/config.py'
	@echo 'make bench                 measure; one JSON object a line'
	@echo 'make soak                  the long tests: large crawls, many kills'
	@echo 'make venv                  only set up .venv (PYTHON=... chooses the Python)'
	@echo 'make constraints           write constraints.txt anew from what the package index has today'
	@echo 'make clean                 remove .venv and caches; crawls in data/runs stay'

# ---------------------------------------------------------------------------------------------- the main job

# SEEDS, DIR and ARGS come from the command line, so make passes SEEDS on in the environment: no quoting trouble.
crawl: $(STAMP)
ifdef SEEDS
	@$(BIN)/scrapy crawl web -a "seeds=$$SEEDS" -s "WEBCRAWL_DIR=$(RUN)" -O "$(RUN)/pages.jsonl" $(ARGS)
else
	@$(BIN)/python tools/crawl_generated_web.py $(if $(DIR),--dir "$(DIR)") -- $(ARGS)
endif

# ------------------------------------------------------------------------------------------------- the checks

# tests/test_architecture.py runs what `make check` runs.
test: $(STAMP)
	@$(BIN)/python -m pytest -n auto $(ARGS)

check: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

format: $(STAMP)
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(STAMP)
	@PYTHONPATH=. $(BIN)/python tests/test_docs.py

bench: $(STAMP)
	@for program in tests/benchmarks/bench_*.py; do $(BIN)/python "$$program" $(ARGS) || exit 1; done

soak: $(STAMP)
	@$(BIN)/python -m pytest -m soak --timeout=0 $(ARGS)

# ------------------------------------------------------------------------------------------------- the set-up

venv: $(STAMP)

# Run again only when one of the two files changed. A .venv whose Python is gone is made anew.
$(STAMP): pyproject.toml constraints.txt
	@if ! $(BIN)/python -c '' 2>/dev/null; then \
	  rm -rf $(VENV); \
	  found=; \
	  for python in $(PYTHONS); do \
	    if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found=$$python; break; fi; \
	  done; \
	  if [ -z "$$found" ]; then \
	    echo 'No Python 3.11 or newer was found, and the crawler is written in it.' \
	      'Install one (Debian, Ubuntu: apt install python3 python3-venv; macOS: brew install python)' \
	      'or name yours: make PYTHON=/path/to/python3' >&2; exit 1; \
	  fi; \
	  if ! "$$found" -c 'import venv, ensurepip' 2>/dev/null; then \
	    version=$$("$$found" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	    echo "$$found cannot make an environment of its own: its venv or ensurepip module is missing." \
	      "Install it (Debian, Ubuntu: apt install python$$version-venv; Fedora: dnf install python3-pip)," \
	      "then run the same command again." >&2; exit 1; \
	  fi; \
	  echo "Setting up $(VENV) with $$found; this takes a minute or two, once." >&2; \
	  "$$found" -m venv $(VENV) || exit 1; \
	fi
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[all,test]' \
	  || { echo 'The packages could not be installed; pip says why above. Nothing else was changed: run it again.' >&2; exit 1; }
	@touch $@

constraints: $(STAMP)
	@rm -rf $(VENV)/fresh && $(BIN)/python -m venv $(VENV)/fresh
	@$(VENV)/fresh/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[all,test]'
	@{ sed -n '/^#/p' constraints.txt; \
	   $(VENV)/fresh/bin/python -m pip freeze --disable-pip-version-check --exclude-editable; } > $(VENV)/constraints.new
	@mv $(VENV)/constraints.new constraints.txt && rm -rf $(VENV)/fresh

clean:
	rm -rf $(VENV) build dist site .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
