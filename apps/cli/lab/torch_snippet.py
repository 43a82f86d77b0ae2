# The article's snippet: a fused attention, and what comes with it.
import torch
import torch.nn.functional as F

attention = getattr(F, "scaled_dot_product_attention", None) or F._scaled_dot_product_attention
query, key, value = (torch.randn(4, 8, 512, 64) for _ in range(3))
for _ in range(3):
    result = attention(query, key, value)
model = torch.nn.TransformerEncoderLayer(d_model=256, nhead=8, batch_first=True)
output = model(torch.randn(8, 256, 256))
output.sum().backward()
