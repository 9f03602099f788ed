"""Presets of models with masked language modelling."""

from __future__ import annotations

from pretrain_api.presets.preset import Preset

BERT_BASE = Preset(
    name="bert-base",
    architecture="bert",
    source=(
        "Devlin et al. 2018 (arXiv:1810.04805), appendix A.2, without its next-sentence "
        "prediction, which RoBERTa found to bring nothing"
    ),
    layer={
        "tokenizer": {"train": {"algorithm": "wordpiece", "vocabSize": 30_522, "lowercase": True}},
        "objective": {"mlm": {"probability": 0.15, "wholeWord": False}},
        "preprocess": {"sequenceLength": 512},
        "model": {
            "architecture": "bert",
            "config": {
                "hidden_size": 768,
                "num_hidden_layers": 12,
                "num_attention_heads": 12,
                "intermediate_size": 3072,
                "max_position_embeddings": 512,
                "type_vocab_size": 2,
            },
        },
        "training": {
            "globalBatchSize": 256,
            "maxSteps": 1_000_000,
            "optimizer": {
                "name": "adamw",
                "learningRate": 1e-4,
                "betas": [0.9, 0.999],
                "epsilon": 1e-6,
                "weightDecay": 0.01,
            },
            "schedule": {"type": "linear", "warmupSteps": 10_000},
        },
    },
)

ROBERTA_BASE = Preset(
    name="roberta-base",
    architecture="roberta",
    source=(
        "the masked language modelling example of transformers (examples/flax/"
        "language-modeling), RoBERTa-base on the Norwegian part of OSCAR"
    ),
    expectation="loss 1.78 and accuracy 0.64 after 18 epochs",
    layer={
        "tokenizer": {
            "train": {
                "algorithm": "byteLevelBpe",
                "vocabSize": 50_265,
                "minFrequency": 2,
                "lowercase": False,
            }
        },
        "objective": {"mlm": {"probability": 0.15, "wholeWord": False}},
        "preprocess": {"sequenceLength": 128},
        "model": {
            "architecture": "roberta",
            "config": {
                "hidden_size": 768,
                "num_hidden_layers": 12,
                "num_attention_heads": 12,
                "intermediate_size": 3072,
                "max_position_embeddings": 514,
                "type_vocab_size": 1,
                "layer_norm_eps": 1e-5,
            },
        },
        "training": {
            "globalBatchSize": 1024,
            "epochs": 18,
            "optimizer": {
                "name": "adamw",
                "learningRate": 3e-4,
                "betas": [0.9, 0.98],
                "epsilon": 1e-8,
                "weightDecay": 0.01,
            },
            "schedule": {"type": "linear", "warmupSteps": 1000},
        },
    },
)

ROBERTA_WWM_EXT_LARGE = Preset(
    name="roberta-wwm-ext-large",
    architecture="bert",
    source=(
        "the RoBERTa pretraining example of ColossalAI (32 GPUs of 190 samples), with the sizes "
        "and masking of Cui et al. 2019 (arXiv:1906.08101); a BERT by its architecture, a RoBERTa "
        "by its training"
    ),
    layer={
        "tokenizer": {"train": {"algorithm": "wordpiece", "vocabSize": 21_128, "lowercase": True}},
        "objective": {"mlm": {"probability": 0.15, "wholeWord": True, "segmenter": "jieba"}},
        "preprocess": {"sequenceLength": 512},
        "model": {
            "architecture": "bert",
            "config": {
                "hidden_size": 1024,
                "num_hidden_layers": 24,
                "num_attention_heads": 16,
                "intermediate_size": 4096,
                "max_position_embeddings": 512,
                "type_vocab_size": 2,
            },
        },
        "training": {
            "globalBatchSize": 6080,
            "epochs": 15,
            "optimizer": {
                "name": "adamw",
                "learningRate": 2e-4,
                "betas": [0.9, 0.95],
                "epsilon": 1e-8,
                "weightDecay": 0.1,
            },
            "schedule": {"type": "linear", "warmupSteps": 2000},
        },
    },
)

MODERNBERT_SMALL = Preset(
    name="modernbert-small",
    architecture="modernbert",
    source=(
        "half the width and half the layers of ModernBERT-base, with its masking rate, learning "
        "rate, decay and betas (Warner et al. 2024, arXiv:2412.13663); no model of this size was "
        "published"
    ),
    layer={
        "objective": {"mlm": {"probability": 0.3}},
        "preprocess": {"sequenceLength": 512},
        "model": {
            "architecture": "modernbert",
            "config": {
                "hidden_size": 384,
                "num_hidden_layers": 11,
                "num_attention_heads": 6,
                "intermediate_size": 576,
            },
        },
        "training": {
            "optimizer": {
                "name": "adamw",
                "learningRate": 8e-4,
                "betas": [0.9, 0.98],
                "epsilon": 1e-6,
                "weightDecay": 1e-5,
            },
        },
    },
)

DEBERTA_V2_BASE = Preset(
    name="deberta-v2-base",
    architecture="deberta-v2",
    source="He et al. 2020 (arXiv:2006.03654), appendix A.2, with the sizes of DeBERTa-v3-base",
    layer={
        "tokenizer": {"train": {"algorithm": "unigram", "vocabSize": 128_000, "lowercase": False}},
        "objective": {"mlm": {"probability": 0.15, "wholeWord": False}},
        "preprocess": {"sequenceLength": 512},
        "model": {
            "architecture": "deberta-v2",
            "config": {
                "hidden_size": 768,
                "num_hidden_layers": 12,
                "num_attention_heads": 12,
                "intermediate_size": 3072,
                "relative_attention": True,
                "position_buckets": 256,
                "position_biased_input": False,
                "pos_att_type": "p2c|c2p",
                "norm_rel_ebd": "layer_norm",
                "share_att_key": True,
            },
        },
        "training": {
            "globalBatchSize": 2048,
            "maxSteps": 1_000_000,
            "optimizer": {
                "name": "adamw",
                "learningRate": 2e-4,
                "betas": [0.9, 0.999],
                "epsilon": 1e-6,
                "weightDecay": 0.01,
            },
            "schedule": {"type": "linear", "warmupSteps": 10_000},
        },
    },
)
