"""A small GPT-2, trained by the Trainer of Transformers on random tokens. Needs a GPU."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Data(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 4096

    def __getitem__(self, i: int) -> dict[str, torch.Tensor]:
        ids = torch.randint(0, 1000, (128,))
        return {"input_ids": ids, "labels": ids}


model = GPT2LMHeadModel(GPT2Config(n_layer=4, n_head=4, n_embd=256, vocab_size=1000, n_positions=128))
args = TrainingArguments(
    "out", max_steps=60, per_device_train_batch_size=32, logging_steps=10, report_to=[], save_strategy="no", bf16=True
)
Trainer(model, args, train_dataset=Data()).train()
