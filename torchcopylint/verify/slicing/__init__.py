"""From a finding to scripts that run the code around it: what is kept of the file, inputs, stand-ins, and a driver.

Works on the `ast` of the file, since what cannot be parsed by the running Python cannot be run by it either.
"""
