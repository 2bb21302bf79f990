"""The parameter models of the toy methods."""

from pydantic import Field

from tasks.stage import Parameters as Section


class Ingest(Section):
    path: str = Field(description="own data")


class Train(Section):
    rate: float = Field(gt=0, le=1, description="step size")
    sleep_s: float = Field(0, ge=0)


class Parameters(Section):
    ingest: Ingest
    train: Train


class Other(Section):
    pass
