from hilltop.integrations.estimator import HilltopClassifier as HilltopClassifier
from hilltop.integrations.hf import hf_epochs as hf_epochs
from hilltop.integrations.hf import hf_loss as hf_loss
