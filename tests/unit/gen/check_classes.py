"""The table of classes against the standard, against docs/procedures.md and against the tests; what the wrappers of each class do."""

import re
import unittest
import unittest.mock
from dataclasses import replace
from pathlib import Path

import classes
import headers
import standard
import wrappers

import docs

ROOT = Path(__file__).resolve().parents[3]
TESTED_BY_GENERATED_CALLS = ("same-node", "refused")  # tests/integration/gen/test_refusals.py calls every one of these


def mentions():
    """Names of procedures that occur in the tests' sources, those of this folder's generator aside."""
    names = set()
    for file in (ROOT / "tests").rglob("*"):
        if file.suffix in (
            ".c",
            ".cpp",
            ".h",
            ".inc",
            ".py",
            ".f90",
            ".F90",
            ".f",
        ) and not file.name.startswith("check_"):
            names |= set(re.findall(r"\bP?(MPIX?_\w+?)(?:_c)?\s*\(", file.read_text()))
            names |= {"MPI_" + word for word in re.findall(r"\breal\.([A-Z]\w+?)(?:_c)?\(", file.read_text())}
            # tests/integration/mpi/collective_calls.c calls the three forms of a collective by one macro.
            for name, lower in re.findall(r"\bCALL\((\w+), (\w+)", file.read_text()):
                names |= {f"MPI_{name}", f"MPI_I{lower}", f"MPI_{name}_init"}
            # tests/integration/shim/earlier_names.c
            names |= {f"MPIX_{name}_init" for name in re.findall(r"\bEQUAL\((\w+), ", file.read_text())}
    return names


class Table(unittest.TestCase):
    def setUp(self):
        self.groups = classes.load()
        self.standard = standard.procedures()

    def test_every_procedure_of_the_standard_has_one_class(self):
        self.assertEqual(classes.problems(self.groups, set(self.standard)), [])
        self.assertGreaterEqual(len(self.standard), 533)

    def test_a_procedure_without_class_with_two_or_unknown_is_named(self):
        for wrong, words in (
            (
                [replace(self.groups[0], procedures=self.groups[0].procedures[1:]), *self.groups[1:]],
                "MPI_Init has no class",
            ),
            ([*self.groups, self.groups[0]], "MPI_Finalize is in more than one group"),
            ([*self.groups, replace(self.groups[0], procedures=("MPI_Sned",))], "MPI_Sned is no procedure"),
        ):
            self.assertTrue(any(words in said for said in classes.problems(wrong, set(self.standard))), words)

    def test_every_sealed_procedure_is_called_in_a_test(self):
        called = mentions()
        sealed = [name for group in self.groups if group.class_ == "sealed" for name in group.procedures]
        self.assertEqual(
            [name for name in sealed if name not in called], [], "these have no test under tests/"
        )

    def test_a_group_that_does_not_say_how_it_waits_is_named(self):
        for wrong, words in (
            (replace(self.groups[0], blocks=""), "is none of never, loop"),
            (replace(self.groups[0], blocks="open", note=""), "no note that says why"),
            (replace(self.groups[0], class_="refused", blocks="meet"), "cannot wait inside the library"),
        ):
            said = classes.problems([wrong, *self.groups[1:]], set(self.standard))
            self.assertTrue(any(words in sentence for sentence in said), words)

    def test_every_procedure_that_may_wait_in_the_library_has_a_case(self):
        table = (ROOT / "tests/integration/mpi/blocking_calls.c").read_text()
        cases = {"MPI_" + name for name in re.findall(r'^    (?:TOGETHER\(|\{")(\w+)', table, re.MULTILINE)}
        # MPI_Win_post never waits; in MPI_Win_sync no MPI moves messages; the first rank waits for nobody in the scans
        # (tests/integration/mpi/rules/inside_node.c).
        cases |= {"MPI_Win_post", "MPI_Win_sync", "MPI_Scan", "MPI_Exscan"}
        waiting = [n for group in self.groups if group.blocks in classes.WRAPPED for n in group.procedures]
        self.assertGreater(len(waiting), 80)
        self.assertEqual([name for name in waiting if name not in cases], [], "no case in blocking_calls.c")

    def test_collective_calls_of_files_and_windows_meet(self):
        of = classes.class_of(self.groups)
        for name in self.standard:
            if re.fullmatch(r"MPI_File_(read|write)_\w*(all|ordered)(_begin|_end)?", name):
                self.assertEqual(of[name].blocks, "meet", name)

    def test_every_refusal_gives_its_reason(self):
        for group in self.groups:
            if group.class_ in TESTED_BY_GENERATED_CALLS:
                self.assertTrue(
                    group.later or "; use " in group.reason,
                    f'"{group.title}" says neither where protection is to come from nor what to use instead',
                )
                self.assertLess(len(group.reason), 120, "error messages of MPI may be as short as 256 bytes")

    def test_page_is_up_to_date(self):
        page = (ROOT / "docs/procedures.md").read_text()
        self.assertEqual(
            page,
            docs.render(self.groups, self.standard),
            "run `cmake --build <build directory> --target docs`",
        )


class Wrappers(unittest.TestCase):
    def setUp(self):
        self.class_of = classes.class_of(classes.load())
        self.standard = standard.procedures()

    def wrapper(self, name):
        """Its text, words apart by one space."""
        return " ".join(wrappers.render(self.standard[name], self.class_of).removeprefix(wrappers.HEAD).split())

    def test_local_procedures_are_not_exported(self):
        for name in (
            "MPI_Get_version",
            "MPI_Abi_get_version",
            "MPI_Comm_c2f",
            "MPI_Comm_rank",
            "MPI_Wtime",
            "MPI_Win_set_name",
        ):
            self.assertEqual(self.wrapper(name), "", name)

    def test_both_names_and_the_large_count_twin_are_defined(self):
        text = self.wrapper("MPI_Send")
        for name in (
            "int PMPI_Send(",
            "decltype(MPI_Send) MPI_Send ",
            "int PMPI_Send_c(",
            "decltype(MPI_Send_c) MPI_Send_c ",
        ):
            self.assertIn(name, text)
        self.assertEqual(text.count("return mpisec::shim::Send("), 2)

    def test_a_blocking_collective_inside_a_node_meets_first(self):
        call = "MPI_Win_allocate_shared"
        text = self.wrapper(call)
        self.assertIn(
            f'if (crosses_nodes(comm)) return refusal_waived("{call}") ? learn_window(real.Win_allocate_shared(', text
        )
        self.assertIn(f': refuse("{call}", comm);', text)
        self.assertIn("return met == MPI_SUCCESS ? learn_window(real.Win_allocate_shared(", text)

    def test_a_window_that_crosses_nodes_is_mpisecs_own(self):
        made = self.wrapper("MPI_Win_create")
        self.assertIn("if (crosses_nodes(comm)) { return mpisec::shim::rma::Win_create(", made)
        self.assertIn("} if (any_foreign_to_library(base)) [[unlikely]] return refuse_device(", made)
        self.assertIn("return met == MPI_SUCCESS ? learn_window(real.Win_create(", made)
        self.assertIn("return mpisec::shim::rma::Put(", self.wrapper("MPI_Put"))
        self.assertIn("if (rma::crosses(*win)) { return mpisec::shim::rma::Win_free(win); }", self.wrapper("MPI_Win_free"))

    def test_a_file_that_crosses_nodes_is_mpisecs_own(self):
        opened = self.wrapper("MPI_File_open")
        self.assertIn("if (crosses_nodes(comm)) { return mpisec::shim::io::File_open(", opened)
        self.assertIn("return met == MPI_SUCCESS ? learn_file(real.File_open(", opened)
        written = self.wrapper("MPI_File_write_shared")
        self.assertIn("if (io::crosses(fh)) { if (any_on_device(buf)) [[unlikely]] return refuse_device(", written)
        self.assertIn("return mpisec::shim::io::File_write_shared(", written)
        self.assertIn("if (io::crosses(*fh)) { return mpisec::shim::io::File_close(fh); }", self.wrapper("MPI_File_close"))

    def test_what_may_wait_in_the_library_gets_its_remedy(self):
        for name, remedy in (
            ("MPI_File_write_all", 'const int met = progress_barrier_of_file("MPI_File_write_all", fh);'),
            ("MPI_Win_fence", 'const int met = progress_barrier_of_window("MPI_Win_fence", win);'),
            ("MPI_Win_wait", "return mpisec::shim::Win_wait(win);"),
            ("MPI_Win_lock", "return mpisec::shim::Win_lock("),
            ("MPI_File_close", "return mpisec::shim::File_close(fh);"),
            ("MPI_Win_flush", "progress(); return real.Win_flush("),
        ):
            self.assertIn(remedy, self.wrapper(name), name)

    def test_collectives_are_planned_and_run_in_the_form_of_their_name(self):
        text = self.wrapper("MPI_Scan")
        self.assertIn("if (!crosses_nodes(comm)) {", text)
        self.assertIn("return met == MPI_SUCCESS ? real.Scan(", text)
        self.assertIn('return run_collective(plan::Scan("MPI_Scan", ', text)
        self.assertIn('return start_collective(plan::Scan("MPI_Iscan", ', self.wrapper("MPI_Iscan"))
        self.assertIn('return init_collective(plan::Scan("MPI_Scan_init", ', self.wrapper("MPI_Scan_init"))
        self.assertNotIn("progress_barrier_of_members", self.wrapper("MPI_Iscan"))

    def test_refused_and_first_calls_have_no_short_cut_for_one_node(self):
        for name in (
            "MPI_Comm_spawn",
            "MPI_Lookup_name",
            "MPI_Init",
            "MPI_Comm_get_parent",
            "MPI_Comm_create_from_group",
        ):
            self.assertNotIn("pass_through", self.wrapper(name), name)
            self.assertIn("called_by_library", self.wrapper(name), name)

    def test_what_does_not_pass_by_the_gate_still_stops_there(self):
        for name in ("MPI_Comm_spawn", "MPI_Comm_get_parent", "MPI_Comm_create_from_group"):
            self.assertIn(f'if (!through) pass_gate("{name}");', self.wrapper(name))

    def test_initialized_needs_no_mpi_library(self):
        text = self.wrapper("MPI_Initialized")
        self.assertIn("library_is_loaded() && called_by_library(", text)
        self.assertIn("return mpisec::shim::Initialized(flag);", text)

    def test_an_extension_that_nobody_knows_is_refused_between_nodes(self):
        declarations = (
            "int MPIX_Shout(MPI_Comm comm, const char words[]) __attribute__((x)); int MPIX_Query(void);"
        )
        with unittest.mock.patch.object(headers, "_preprocessed", return_value=declarations):
            found = headers.extensions("cc", [])
        self.assertEqual(
            [(f.name, f.communicator, len(f.parameters)) for f in found], [("MPIX_Shout", "comm", 2)]
        )
        text = wrappers.render(found, {"MPIX_Shout": classes.UNKNOWN_EXTENSION})
        self.assertIn(
            'if (!crosses_nodes(comm) || refusal_waived("MPIX_Shout")) return extension(comm, words);', text
        )

    def test_earlier_names_are_those_of_open_mpi_alone(self):
        bindings = self.standard["MPI_Bcast_init"]
        for declarations, expected in (("struct ompi_communicator_t;", ["MPIX_Bcast_init"]), ("", [])):
            with unittest.mock.patch.object(headers, "_preprocessed", return_value=declarations):
                found = headers.earlier_names("cc", [], bindings, set(self.class_of))
            self.assertEqual([each.name for each in found], expected)
            text = wrappers.render([], self.class_of, found)
            self.assertEqual('extern "C" decltype(MPI_Bcast_init) MPIX_Bcast_init;' in text, bool(expected))
            self.assertEqual("int PMPIX_Bcast_init(" in text, bool(expected))

    def test_what_a_library_lacks_is_an_error(self):
        for name, group in self.class_of.items():
            if group.wrapped and group.check != "early" and name in self.standard:
                for binding in self.standard[name]:
                    self.assertIn(
                        f"if (!real.{binding.name.removeprefix('MPI_')}) [[unlikely]] return as_handler_left(refuse(",
                        self.wrapper(name),
                        name,
                    )

    def test_what_programs_call_again_and_again_stands_together_in_memory(self):
        for name in ("MPI_Send", "MPI_Waitall", "MPI_Allreduce", "MPI_Put"):
            self.assertIn(f"MPISEC_OFTEN int P{name}(", self.wrapper(name))
        for name in ("MPI_Init", "MPI_Comm_dup", "MPI_Win_create", "MPI_Allreduce_init"):
            self.assertIn(f"MPISEC_SELDOM int P{name}(", self.wrapper(name))


if __name__ == "__main__":
    unittest.main()
