"""The chart with the helm that the test bed builds."""

import pytest
from bed.binaries import program
from pretrain_testing.chart import Chart


@pytest.fixture(scope="session")
def chart() -> Chart:
    """The chart, rendered by a real helm."""
    return Chart(helm=str(program("helm")))
