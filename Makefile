# The front door. Everything happens in .venv, which bootstrap.sh makes ready at the first call.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
unexport PYTHONPATH         # what modules put there would precede .venv's packages
.NOTPARALLEL:
.PHONY: run test check bench nightly endurance serve screenshots site wheel clean

run: .venv/ready-run        # measure, ingest, soak, tune, export, show
	switchpoint run

test: .venv/ready-test      # what a bare machine can test; the rest is skipped, with reasons
	python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

check: .venv/ready-check    # formatters, linters, types, warnings as errors, sanitizers
	.ci/check

bench: .venv/ready-test     # how fast it all is, beside its bars: build/bench; goes on where it ended
	python -m tests.bench

nightly: .venv/ready-check  # the long runs, three hours at most; goes on where it ended
	.ci/nightly

endurance: .venv/ready-check # methods and parsers millions of times; a day, or SHARE=0.01 of it; goes on where it ended
	python -m tests.endurance --share $(or $(SHARE),1)

serve: .venv/ready-run      # the dashboard
	switchpoint serve

screenshots: .venv/ready-test  # the pictures of the documentation, from results/sample; needs chromium
	python -m tests.dashboard.screenshots

site: .venv/ready-check     # the documentation as pages that need no server, and man pages: build/site
	python -m docs.site

wheel: .venv/ready-run      # build/wheel/switchpoint-*.whl, which needs no checkout
	python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir build/wheel .

clean:                      # what was built; results/ and .venv stay
	rm -rf build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

FORCE:
# .venv may be of another place, its Python may have been upgraded, and PYTHON may name another.
place := from tuner.paths import CHECKOUT; print(CHECKOUT)
.venv/ready-%: bootstrap.sh pyproject.toml $(if $(PYTHON),FORCE) \
  $(shell [ "$$(.venv/bin/python -Ic '$(place)' 2>/dev/null)" -ef . ] || echo FORCE)
	./bootstrap.sh $*
