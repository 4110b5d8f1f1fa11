"""millrace: image datasets as verified shards, streamed by threads in C.

    import millrace

    millrace.ingest("imagenette2-160.tgz", to="imagenette")
    dataset = millrace.Dataset("imagenette")
    for images, labels in dataset.loader("train", 64, shuffle=True):  # one epoch; torch tensors if torch is imported
        ...

What is where: Dataset and Split read samples, Loader makes batches, ingest() and write() make datasets, verify() proves
that one is intact. Nothing is printed; every failure is a millrace.Error.

Processes and threads: datasets and splits can be shared by threads, used after fork, and pickled. A loader in a child of
fork starts threads of its own. Several loaders may run at once. Sub-interpreters may import the module, each for itself;
without the GIL, a loader is to be used by one thread at a time.
"""

from ._augment import Augment
from ._dataset import Dataset, Sample, Split
from ._errors import BadDataError, BadSampleError, Error, MisuseError, SystemFailure
from ._loader import Batch, Loader
from ._millrace import __version__
from ._program import VerifyReport, cli, export, ingest, verify, view
from ._ragged import Ragged
from ._rewrite import Meta
from ._tokens import Tokenizer
from ._views import Center, Crop, Letterbox, RandomCrop, Square, View
from ._write import Writer, WriteSample, write

__all__ = [
    "Augment",
    "BadDataError",
    "BadSampleError",
    "Batch",
    "Center",
    "Crop",
    "Dataset",
    "Error",
    "Letterbox",
    "Loader",
    "Meta",
    "MisuseError",
    "Ragged",
    "RandomCrop",
    "Sample",
    "Split",
    "Square",
    "SystemFailure",
    "Tokenizer",
    "VerifyReport",
    "View",
    "WriteSample",
    "Writer",
    "__version__",
    "cli",
    "export",
    "ingest",
    "verify",
    "view",
    "write",
]
