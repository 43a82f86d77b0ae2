import torch
import time
import psutil

def inefficient_inference(model, input_tensor, num_iterations):
    process = psutil.Process()
    for _ in range(num_iterations):
        start_memory = process.memory_info().rss / (1024 * 1024)
        output = model(input_tensor) # Autograd tracks operations here
        end_memory = process.memory_info().rss / (1024 * 1024)
        print(f"Memory change during inference: {end_memory - start_memory:.2f} MB")
        time.sleep(0.05) # Simulating a delay between calls

if __name__ == '__main__':
    model = torch.nn.Linear(10, 5) # simple model
    input_data = torch.randn(1, 10) # single input tensor
    num_iterations = 10
    inefficient_inference(model, input_data, num_iterations)
