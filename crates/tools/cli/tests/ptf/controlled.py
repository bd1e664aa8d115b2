"""What the tests share: a switch that P4Runtime controls, with unmodified clients.

Parameters: `address` of the server, `p4info`, a P4Info file.
"""

import p4runtime_sh.shell as sh
import ptf
from ptf import testutils
from ptf.base_tests import BaseTest


class ControlledTest(BaseTest):
    def setUp(self):
        super().setUp()
        self.dataplane = ptf.dataplane_instance
        self.dataplane.flush()
        address = testutils.test_param_get("address")
        p4info = testutils.test_param_get("p4info")
        # Without a program, what runs goes on, without entries.
        config = sh.FwdPipeConfig(p4info, "/dev/null")
        sh.setup(
            device_id=1, grpc_addr=address, election_id=(0, 1), config=config, verbose=False
        )

    def tearDown(self):
        sh.teardown()
        super().tearDown()

    def insert(self, table, match, action, priority=0, **params):
        entry = sh.TableEntry(table)(action=action)
        for name, value in match.items():
            entry.match[name] = value
        for name, value in params.items():
            entry.action[name] = value
        if priority:
            entry.priority = priority
        entry.insert()
        return entry
