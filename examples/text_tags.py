"""Tag texts with the Hugging Face Trainer when annotators left tags out; the texts are generated.

Run it with: python examples/text_tags.py
"""

import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from hilltop.integrations import hf_epochs, hf_loss
from hilltop.losses import hill, init_head
from hilltop.metrics import mean_average_precision

TOPICS, WORDS_A_TOPIC, LENGTH = 12, 20, 12
PAD, FIRST_WORD = 0, 1


def generate(texts: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Return texts as word numbers, and their tags: a text has words of one to four tags."""
    tags = torch.zeros(texts, TOPICS)
    words = torch.empty(texts, LENGTH, dtype=torch.long)
    for row in range(texts):
        count = int(torch.randint(1, 5, (), generator=generator))
        chosen = torch.randperm(TOPICS, generator=generator)[:count]
        tags[row, chosen] = 1
        topics = chosen[torch.randint(count, (LENGTH,), generator=generator)]
        places = torch.randint(WORDS_A_TOPIC, (LENGTH,), generator=generator)
        words[row] = FIRST_WORD + topics * WORDS_A_TOPIC + places
    return words, tags


def rows(words: torch.Tensor, tags: torch.Tensor) -> list[dict[str, torch.Tensor]]:
    """Return what the Trainer calls a data set."""
    return [{"input_ids": w, "labels": t} for w, t in zip(words, tags, strict=True)]


def tiny_model() -> BertForSequenceClassification:
    """Build a text model with random weights; nothing is downloaded."""
    config = BertConfig(
        vocab_size=FIRST_WORD + TOPICS * WORDS_A_TOPIC,
        hidden_size=48,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=LENGTH,
        num_labels=TOPICS,
        pad_token_id=PAD,
        problem_type="multi_label_classification",
    )
    return BertForSequenceClassification(config)


def main() -> None:
    """Train on 40% of the tags and print mAP on complete ones."""
    generator = torch.Generator().manual_seed(0)
    words, tags = generate(1400, generator)
    kept = tags * (torch.rand(tags.shape, generator=generator) < 0.4)
    torch.manual_seed(0)
    model = tiny_model()
    criterion = hill()
    init_head(model, criterion, kept[:1000])
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model=model,
            args=TrainingArguments(
                output_dir=folder,
                num_train_epochs=8,
                per_device_train_batch_size=8,
                gradient_accumulation_steps=2,
                learning_rate=5e-3,
                save_strategy="no",
                report_to="none",
                use_cpu=True,
                disable_tqdm=True,
            ),
            train_dataset=rows(words[:1000], kept[:1000]),
            compute_loss_func=hf_loss(criterion),  # <- the line to add
            callbacks=[hf_epochs(criterion)],  # <- and this one, for losses that count epochs
        )
        trainer.train()
        scores = trainer.predict(rows(words[1000:], tags[1000:])).predictions
    print(f"hill mAP {100 * mean_average_precision(scores, tags[1000:]):.2f}")


if __name__ == "__main__":
    main()
