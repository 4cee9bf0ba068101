# says: opening|RuntimeError
import torch

torch.save(torch.ones(2), "VICTIM/written")
torch._C.PyTorchFileWriter("VICTIM/written").write_record("a", b"a", 1)
