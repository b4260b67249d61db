#!/bin/sh
# Starts the server with the wire on its standard input and output, for a server
# that takes no other streams:
#
#     wireguardrun -- sh launcher.sh
#
# What comes before attach is kept off the wire by wireguardrun, and while the
# server serves its SDK does the same. The rest is on the wire: what is printed
# while python loads the server, and what is printed at its end, or was printed
# before and left in a buffer. Hence -u: nothing is left.
echo '<stray launcher at start>'
exec wireguardrun attach -- python -u "$(dirname "$0")/server.py"
