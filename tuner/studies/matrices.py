"""The matrices that studies make, which are kept to save time."""

from pathlib import Path

from tuner.inputs.matrices import lookalike
from tuner.inputs.matrices.degree_sequence import Target
from tuner.paths import results_directory
from tuner.studies.simulator import LogFunction, StudyError


def matrices_directory() -> Path:
    """Return the directory of these matrices."""
    directory = (results_directory() / "matrices").absolute()
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def original_of(name: str) -> lookalike.Original:
    """Return a matrix of the paper on store-and-forward. Raise StudyError."""
    originals = lookalike.originals()
    if name not in originals:
        raise StudyError(f"no matrix {name!r}; available: {', '.join(originals)}")
    return originals[name]


def lookalike_file(original: lookalike.Original, target: Target, log: LogFunction) -> Path:
    """Return the look-alike of a matrix. Raise MatrixError."""
    path = matrices_directory() / f"{original.name}-{target.rows}-{target.nnz}.mtx"
    if not path.is_file():
        log(f"making a look-alike of {original.name} with {target.rows} rows")
        lookalike.make(original, target, path, seed=1)
    return path
