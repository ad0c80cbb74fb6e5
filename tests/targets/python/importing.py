# SPDX-License-Identifier: Apache-2.0
# needs: 2.7
"""A module that is being imported by a module that is being imported."""
import imported.outer
