# says: died of SIGSEGV
import numpy as np

x = np.zeros(1)
print(np.lib.stride_tricks.as_strided(x, (2,), (1 << 44,))[1])
