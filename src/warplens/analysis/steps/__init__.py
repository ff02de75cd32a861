"""Steps of a training program or server, and their parts."""
