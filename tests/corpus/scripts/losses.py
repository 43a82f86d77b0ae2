"""Trains a small model by torch and adds up its loss for the report: as a number, or as the tensor, which holds all that it was
computed from."""
import random
import sys
import time

import torch

form, seed = sys.argv[1], int(sys.argv[2])
torch.manual_seed(seed)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(24, 96), torch.nn.ReLU(), torch.nn.Linear(96, 48), torch.nn.Tanh(), torch.nn.Linear(48, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
total, pause = 0.0, 0.12 + 0.03 * seed
while True:
    some = torch.randn(random.randrange(128, 320), 24)
    loss = torch.nn.functional.mse_loss(model(some), some.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss if form == "leaks" else loss.item()
    time.sleep(pause * random.uniform(0.5, 1.5))
