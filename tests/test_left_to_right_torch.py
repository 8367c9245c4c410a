"""A left-to-right encoder is transformers' BERT with `is_decoder`, in folders too."""

import transformers

import kbert
from tests import random_bert, tiny
from tests.tasks.test_pretraining_torch import check_logits, save, theirs_of


def test_what_transformers_saved_answers_the_same(tmp_path):
    theirs = theirs_of("BertForMaskedLM", is_decoder=True)
    save(theirs, tmp_path)
    ours = kbert.BertMaskedLM.from_preset(tmp_path)
    assert ours.backbone.config.left_to_right
    check_logits(ours, theirs)


def test_what_kbert_saved_is_no_bidirectional_bert_there(tmp_path):
    backbone = tiny.backbone(left_to_right=True)
    ours = kbert.BertMaskedLM(backbone, tiny.preprocessor())
    random_bert.shake(ours)
    ours.save_to_preset(tmp_path / "preset")
    theirs = transformers.BertForMaskedLM.from_pretrained(tmp_path / "preset").eval()
    assert theirs.config.is_decoder
    check_logits(ours, theirs)
