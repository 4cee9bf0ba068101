# says: nothing to be read
import torch

names = set(torch.os.environ)
assert names <= {"HOME", "PATH", "TMPDIR", "LC_CTYPE"}, names
raise SystemExit("nothing to be read")
