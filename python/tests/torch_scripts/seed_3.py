import torch
import numpy as np
import time
import psutil
from torch.utils.data import Dataset, DataLoader

class CustomDataset(Dataset):
    def __init__(self, num_samples):
        self.data = np.random.rand(num_samples, 1000)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        return torch.from_numpy(self.data[index]).float() # Creates a temporary tensor on CPU

def inefficient_data_loading_inference(model, data_loader, num_iterations):
    process = psutil.Process()
    with torch.no_grad():
        for _ in range(num_iterations):
            for input_batch in data_loader:
                start_memory = process.memory_info().rss / (1024 * 1024)
                output = model(input_batch)
                end_memory = process.memory_info().rss / (1024 * 1024)
                print(f"Memory change during inference with data load: {end_memory - start_memory:.2f} MB")
                time.sleep(0.05)

if __name__ == '__main__':
        model = torch.nn.Linear(1000, 5)
        dataset = CustomDataset(num_samples = 100)
        data_loader = DataLoader(dataset, batch_size=10, shuffle=False)
        num_iterations = 5
        inefficient_data_loading_inference(model, data_loader, num_iterations)
