"""From raw Kubernetes objects to what the plan reads; pure, and no client is known here.

`PodFacts`, `FailedCreate` and `Refusal` are the little that an executor keeps between two plans;
`observed_of` puts it together with the raw child Jobs.
"""

from pretrain_operator.observe.events import FailedCreate
from pretrain_operator.observe.identity import JobKey, key_of, uid_of
from pretrain_operator.observe.jobs import Children, observed_of
from pretrain_operator.observe.pods import PodFacts
from pretrain_operator.observe.refusals import forget, remember

__all__ = [
    "Children",
    "FailedCreate",
    "JobKey",
    "PodFacts",
    "forget",
    "key_of",
    "observed_of",
    "remember",
    "uid_of",
]
