# SPDX-License-Identifier: Apache-2.0
"""Never gets through its own import."""
from expect import LONG, pause, tell

tell(1)
while True: pause(LONG)
