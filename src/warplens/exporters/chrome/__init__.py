"""Chrome and Kineto traces."""
