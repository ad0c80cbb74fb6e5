# SPDX-License-Identifier: Apache-2.0
"""Turn the viewer's page into C: what stands before and behind the place of the profile (src/formats/viewer.h)."""

import sys

MARKER = b"@CAIRN_PROFILE@"


def array(name, data):
    rows = (", ".join(map(str, data[at:at + 24])) for at in range(0, len(data), 24))
    return "const unsigned char %s[] = {\n%s\n};\nconst size_t %s_size = %d;\n" % (name, ",\n".join(rows), name, len(data))


def main(page_path, source_path):
    with open(page_path, "rb") as page:
        parts = page.read().split(MARKER)
    if len(parts) != 2:
        sys.exit("%s: %s stands in it %d times, not once" % (page_path, MARKER.decode(), len(parts) - 1))
    with open(source_path, "w", encoding="ascii") as source:
        source.write('#include "formats/viewer.h"\n\n')
        source.write(array("viewer_before", parts[0]))
        source.write(array("viewer_after", parts[1]))


main(sys.argv[1], sys.argv[2])
