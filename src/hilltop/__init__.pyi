from hilltop import audit as audit
from hilltop import data as data
from hilltop import errors as errors
from hilltop import inputs as inputs
from hilltop import integrations as integrations
from hilltop import losses as losses
from hilltop import metrics as metrics
from hilltop import missing as missing
from hilltop import models as models
from hilltop import report as report
from hilltop import studies as studies
from hilltop import training as training
from hilltop.audit import find_missing_labels as find_missing_labels
from hilltop.data import LabelTable as LabelTable
from hilltop.data import read_labels as read_labels
from hilltop.data import write_labels as write_labels
from hilltop.integrations import HilltopClassifier as HilltopClassifier
from hilltop.metrics import classification_report as classification_report
from hilltop.training import train as train

__version__: str
