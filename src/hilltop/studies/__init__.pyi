from hilltop.studies import advise as advise
from hilltop.studies import compare as compare
from hilltop.studies import demo as demo
from hilltop.studies import reproduce as reproduce
