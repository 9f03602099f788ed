"""Presets of models that read with an encoder and write with a decoder."""

from __future__ import annotations

from pretrain_api.presets.preset import Preset

T5_V1_1_BASE = Preset(
    name="t5-v1_1-base",
    architecture="t5",
    source=(
        "the span corruption example of transformers (examples/flax/language-modeling), T5 v1.1 "
        "on the Norwegian part of OSCAR"
    ),
    expectation="loss 2.36",
    layer={
        "tokenizer": {"train": {"algorithm": "unigram", "vocabSize": 32_000, "lowercase": False}},
        "objective": {"spanCorruption": {"noiseDensity": 0.15, "meanSpanLength": 3.0}},
        "preprocess": {"sequenceLength": 512},
        "model": {
            "architecture": "t5",
            "config": {
                "d_model": 768,
                "d_kv": 64,
                "d_ff": 2048,
                "num_layers": 12,
                "num_decoder_layers": 12,
                "num_heads": 12,
                "feed_forward_proj": "gated-gelu",
                "tie_word_embeddings": False,
            },
        },
        "training": {
            "globalBatchSize": 256,
            "optimizer": {"name": "adafactor", "learningRate": 5e-3, "weightDecay": 1e-3},
            "schedule": {"type": "linear", "warmupSteps": 2000},
        },
    },
)

BART_BASE = Preset(
    name="bart-base",
    architecture="bart",
    source=(
        "the denoising example of transformers (examples/flax/language-modeling), BART-base on "
        "the Norwegian part of OSCAR"
    ),
    expectation="loss 1.36",
    layer={
        "tokenizer": {
            "train": {
                "algorithm": "byteLevelBpe",
                "vocabSize": 50_265,
                "minFrequency": 2,
                "lowercase": False,
            }
        },
        "objective": {
            "denoising": {"maskRatio": 0.3, "poissonLambda": 3.0, "permuteSentences": True}
        },
        "preprocess": {"sequenceLength": 1024},
        "model": {
            "architecture": "bart",
            "config": {
                "d_model": 768,
                "encoder_layers": 6,
                "decoder_layers": 6,
                "encoder_attention_heads": 12,
                "decoder_attention_heads": 12,
                "encoder_ffn_dim": 3072,
                "decoder_ffn_dim": 3072,
                "max_position_embeddings": 1024,
            },
        },
        "training": {
            "globalBatchSize": 256,
            "optimizer": {"name": "adamw", "learningRate": 1e-4, "weightDecay": 0.01},
            "schedule": {"type": "linear", "warmupSteps": 2000},
        },
    },
)
