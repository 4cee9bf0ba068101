# says: import helpers
x = 1
import helpers

helpers.run()
