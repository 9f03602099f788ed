"""DIR/pretrainjob.yaml: the job with its status, as `kubectl get -o yaml` would show it.

It is what a later run goes by, and replaced atomically; a damaged one is refused, because without
its uid the job's checkpoints would not be found.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pretrain_api.job import PretrainJob
from pydantic import ValidationError

from pretrainctl.atomic_file import write_atomically
from pretrainctl.errors import InvalidError, JobFailedError
from pretrainctl.local.workdir import WorkDir
from pretrainctl.yaml_positions import NotYamlError, decode_text, read_documents
from pretrainctl.yaml_scalars import dump_yaml


@dataclass(frozen=True)
class JobFile:
    """The job's file in a working directory."""

    workdir: WorkDir

    def load(self) -> PretrainJob | None:
        """The job of an earlier run, if there was one; InvalidError when the file is damaged."""
        path = self.workdir.job_file
        try:
            documents = list(read_documents(decode_text(path.read_bytes())))
            data = documents[0].data if documents else None
            return PretrainJob.model_validate_json(json.dumps(data))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InvalidError(f"{path} cannot be read: {error.strerror}") from None
        except (NotYamlError, ValidationError) as error:
            raise InvalidError(
                f"{path} is damaged ({_first_line(error)}); put it right, or delete it to start "
                "a new job here, which uses the finished stages in the storage again"
            ) from None

    def save(self, job: PretrainJob) -> None:
        """Replace the file; JobFailedError when there is no room for it."""
        try:
            write_atomically(self.workdir.job_file, dump_yaml([job_as_data(job)]).encode())
        except OSError as error:
            raise JobFailedError(
                f"{self.workdir.job_file} cannot be written: {error.strerror}; "
                "put that right, then the same command goes on from the last checkpoint"
            ) from None


def job_as_data(job: PretrainJob) -> dict[str, Any]:
    """Plain JSON values: the spec as it was written, the status without what is not known."""
    written = job.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"status"})
    status = job.status.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {**written, "status": status}


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error).partition("\n")[0]
