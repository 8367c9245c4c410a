"""Settings: Google's numbers, and what is refused."""

import json

import pytest

from kbert.preprocessing.masking import MaskingRule
from kbert.pretraining.settings import InstanceSettings


def test_the_defaults_are_googles():
    settings = InstanceSettings()
    assert (settings.sequence_length, settings.dupe_factor) == (128, 10)
    assert (settings.short_seq_prob, settings.seed) == (0.1, 12345)
    assert settings.masking == MaskingRule(0.15, 20, 0.8, 0.1)
    assert settings.budget == 125
    assert InstanceSettings(next_sentence="none").budget == 126


def test_settings_go_through_json():
    rule = MaskingRule(0.2, None, 0.7, 0.2, True, 3)
    settings = InstanceSettings(64, "order", 0.3, 2, rule, False, 7, 99)
    told = json.loads(json.dumps(settings.to_json()))
    assert InstanceSettings.from_json(told) == settings
    assert settings != InstanceSettings()


@pytest.mark.parametrize(
    ("values", "received"),
    [
        ({"sequence_length": 7}, "`sequence_length`.* 8 .*Received: 7"),
        ({"sequence_length": 64.0}, "`sequence_length`.*Received: 64.0"),
        ({"dupe_factor": 0}, "`dupe_factor`.*Received: 0"),
        ({"dupe_factor": True}, "`dupe_factor`.*Received: True"),
        ({"short_seq_prob": 1.1}, "`short_seq_prob`.*Received: 1.1"),
        ({"next_sentence": "maybe"}, "`next_sentence`.*Received: 'maybe'"),
        ({"seed": -1}, "`seed`.*Received: -1"),
        ({"shard_tokens": 0}, "`shard_tokens`.*Received: 0"),
    ],
)
def test_settings_that_are_none(values, received):
    with pytest.raises(ValueError, match=received):
        InstanceSettings(**values)
