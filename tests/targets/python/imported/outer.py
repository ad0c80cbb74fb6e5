# SPDX-License-Identifier: Apache-2.0
"""Imported by importing.py."""
from imported import inner
