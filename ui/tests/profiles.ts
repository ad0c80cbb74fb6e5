// SPDX-License-Identifier: Apache-2.0
/* Made-up profiles: a small one by hand, a realistic one, one of any size; and the page that cairn would write. */

export interface RawFrame {
	name: string;
	kind?: string;
	file?: string;
	line?: number;
	object?: string;
	inlined?: boolean;
}

export interface RawProfile {
	version: number;
	session: Record<string, unknown>;
	value: { name: string; unit: string };
	kinds: string[];
	strings: string[];
	frames: { name: number[]; kind: number[]; file: number[]; line: number[]; object: number[]; inlined: number[] };
	stacks: { parent: number[]; frame: number[] };
	processes: { pid: number[]; name: number[] };
	samples: { stack: number[]; process: number[]; value: number[] };
}

/* Numbers that are the same on every run (Park and Miller's generator). */
export function randomNumbers(seed: number): () => number {
	let state = seed;
	return () => {
		state = (state * 48271) % 0x7fffffff;
		return state / 0x7fffffff;
	};
}

export class ProfileWriter {
	raw: RawProfile = {
		version: 1,
		session: {},
		value: { name: "samples", unit: "count" },
		kinds: [],
		strings: [],
		frames: { name: [], kind: [], file: [], line: [], object: [], inlined: [] },
		stacks: { parent: [], frame: [] },
		processes: { pid: [], name: [] },
		samples: { stack: [], process: [], value: [] },
	};
	#ids = new Map<string, number>();

	#intern(key: string, make: () => number): number {
		let id = this.#ids.get(key);
		if (id === undefined) {
			id = make();
			this.#ids.set(key, id);
		}
		return id;
	}

	string(text: string | undefined): number {
		return text === undefined ? -1 : this.#intern(`s${text}`, () => this.raw.strings.push(text) - 1);
	}

	kind(name: string): number {
		return this.#intern(`k${name}`, () => this.raw.kinds.push(name) - 1);
	}

	frame(frame: RawFrame): number {
		return this.#intern(`f${JSON.stringify(frame)}`, () => {
			const { frames } = this.raw;
			frames.kind.push(this.kind(frame.kind ?? "native"));
			frames.file.push(this.string(frame.file));
			frames.line.push(frame.line ?? 0);
			frames.object.push(this.string(frame.object));
			frames.inlined.push(frame.inlined ? 1 : 0);
			return frames.name.push(this.string(frame.name)) - 1;
		});
	}

	process(pid: number, name: string): number {
		return this.#intern(`p${pid} ${name}`, () => {
			this.raw.processes.name.push(this.string(name));
			return this.raw.processes.pid.push(pid) - 1;
		});
	}

	stack(frames: readonly RawFrame[]): number {
		let parent = -1;
		for (const frame of frames) {
			const id = this.frame(frame);
			const up = parent;
			parent = this.#intern(`t${up},${id}`, () => {
				this.raw.stacks.parent.push(up);
				return this.raw.stacks.frame.push(id) - 1;
			});
		}
		return parent;
	}

	sample(process: number, frames: readonly RawFrame[], value: number) {
		const { samples } = this.raw;
		samples.stack.push(this.stack(frames));
		samples.process.push(process);
		samples.value.push(value);
	}
}

function frames(kind: string, object: string | undefined, ...names: string[]): RawFrame[] {
	return names.map((name) => (object === undefined ? { name, kind } : { name, kind, object }));
}

/* Two workers and a database: 100 samples, whose shares are easy to check by hand. */
export function smallProfile(): RawProfile {
	const writer = new ProfileWriter();
	writer.raw.session = { title: "small", host: "box", rate_hz: 10, samples: 100, lost: 3 };
	const first = writer.process(11, "worker");
	const second = writer.process(12, "worker");
	const base = writer.process(20, "base");
	const native = (...names: string[]) => frames("native", "worker", ...names);
	const kernel = frames("kernel", "vmlinux", "read", "vfs_read");
	writer.sample(first, native("main", "parse"), 30);
	writer.sample(first, native("main", "parse", "parse", "lex"), 10);
	writer.sample(second, native("main", "parse"), 10);
	writer.sample(second, [...native("main"), ...kernel], 20);
	writer.sample(base, [...frames("native", "base", "main", "query"), ...kernel], 25);
	writer.sample(base, frames("cut", undefined, "[cut: no unwind rows]"), 5);
	return writer.raw;
}

const LIBC = "libc.so.6";
const SYSCALLS: RawFrame[][] = [
	frames("kernel", "vmlinux", "entry_SYSCALL_64_after_hwframe", "do_syscall_64", "__x64_sys_read", "ksys_read", "vfs_read",
		"ext4_file_read_iter", "generic_file_read_iter", "filemap_read", "copy_page_to_iter", "_copy_to_iter"),
	frames("kernel", "vmlinux", "entry_SYSCALL_64_after_hwframe", "do_syscall_64", "__x64_sys_futex", "do_futex", "futex_wait",
		"futex_wait_queue", "schedule", "__schedule", "finish_task_switch.isra.0"),
	frames("kernel", "vmlinux", "entry_SYSCALL_64_after_hwframe", "do_syscall_64", "__x64_sys_sendto", "__sys_sendto",
		"sock_sendmsg", "tcp_sendmsg", "tcp_sendmsg_locked", "tcp_push", "__tcp_push_pending_frames", "tcp_write_xmit",
		"__tcp_transmit_skb", "ip_queue_xmit", "__ip_queue_xmit", "ip_local_out", "ip_output", "ip_finish_output2",
		"__dev_queue_xmit", "dev_hard_start_xmit", "loopback_xmit"),
	frames("kernel", "vmlinux", "asm_exc_page_fault", "exc_page_fault", "do_user_addr_fault", "handle_mm_fault", "__handle_mm_fault",
		"do_anonymous_page", "vma_alloc_folio", "__alloc_pages", "get_page_from_freelist", "clear_page_erms"),
];

const CPP: string[] = [
	"store::Engine::run(store::Options const&)",
	"void store::Shard<store::Key, std::unique_ptr<store::Row>>::compact(std::chrono::milliseconds)",
	"std::_Hashtable<std::string, std::pair<std::string const, unsigned long>, std::allocator<std::pair<std::string const, " +
		"unsigned long>>, std::__detail::_Select1st, std::equal_to<std::string>, std::hash<std::string>>::_M_find_before_node(" +
		"unsigned long, std::string const&, unsigned long) const",
	"std::__introsort_loop<__gnu_cxx::__normal_iterator<store::Row*, std::vector<store::Row>>, long>",
	"store::(anonymous namespace)::decode_varint(unsigned char const*&)",
	"absl::lts_20230802::Mutex::LockSlow(absl::lts_20230802::MuHowS const*)",
	"operator<(store::Key const&, store::Key const&)",
	"store::Block::seek(std::basic_string_view<char>)",
	"snappy::RawUncompress(snappy::Source*, char*)",
	"crc32c::ExtendSse42(unsigned int, unsigned char const*, unsigned long)",
];

const PYTHON: [string, string, number][] = [
	["handle_request", "/srv/app/web/views.py", 88], ["get_queryset", "/srv/app/web/views.py", 131],
	["_fetch_all", "/usr/lib/python3/dist-packages/django/db/models/query.py", 1886],
	["execute_sql", "/usr/lib/python3/dist-packages/django/db/models/sql/compiler.py", 1543],
	["render", "/usr/lib/python3/dist-packages/django/template/base.py", 175],
	["dumps", "/usr/lib/python3.11/json/__init__.py", 183], ["iterencode", "/usr/lib/python3.11/json/encoder.py", 205],
	["<listcomp>", "/srv/app/web/serialize.py", 42], ["to_representation", "/srv/app/web/serialize.py", 67],
];

type Random = () => number;

function pick<T>(random: Random, from: readonly T[]): T {
	return from[Math.floor(random() * random() * from.length)]!;
}

// Each function calls two others, one of them far more often: real programs have few roads and many repeats.
function walk<T>(random: Random, from: readonly T[], depth: number): T[] {
	let at = Math.floor(random() * random() * 3);
	const steps = 1 + Math.floor(Math.sqrt(random()) * depth);
	return Array.from({ length: steps }, () => {
		const here = from[at]!;
		at = (at * 2 + (random() < 0.75 ? 1 : 4)) % from.length;
		return here;
	});
}

const CUT: RawFrame = { name: "[cut: no unwind rows]", kind: "cut" };

function cppStack(random: Random): RawFrame[] {
	const start = frames("native", LIBC, "__clone3", "start_thread").concat(frames("native", "store", "store::Worker::loop()"));
	const code = walk(random, CPP, 9).map((name, i): RawFrame => ({
		name, kind: "native", object: name.startsWith("std") || name.startsWith("absl") ? "libstore.so" : "store",
		file: "src/engine/shard.cc", line: 100 + name.length, inlined: i % 3 === 2,
	}));
	const tail = random();
	if (tail < 0.04)
		return [CUT, ...code];
	return tail < 0.4 ? [...start, ...code, ...pick(random, SYSCALLS).slice(0, 3 + Math.floor(random() * 18))] : [...start, ...code];
}

function pythonStack(random: Random): RawFrame[] {
	const start = frames("native", LIBC, "_start", "__libc_start_main_impl").concat(frames("native", "python3.11", "Py_BytesMain"));
	const code = walk(random, PYTHON, 10).map(([name, file, line]): RawFrame => ({
		name, kind: "python", file, line: line + Math.floor(random() * 6), object: file.includes("/srv/app") ? "app" : "django",
	}));
	const tail = random();
	const inside = frames("native", "python3.11", "_PyEval_EvalFrameDefault", pick(random, ["PyDict_GetItemWithError", "_PyObject_Malloc", "unicode_concat"]));
	if (tail < 0.3)
		return [...start, ...code, ...inside];
	return tail < 0.5 ? [...start, ...code, ...inside, ...pick(random, SYSCALLS)] : [...start, ...code];
}

function javaStack(random: Random): RawFrame[] {
	const names = [
		"java.lang.Thread.run", "java.util.concurrent.ThreadPoolExecutor$Worker.run", "io.netty.util.concurrent.SingleThreadEventExecutor$4.run",
		"io.netty.channel.nio.NioEventLoop.processSelectedKeys", "com.example.billing.Invoice.total",
		"com.example.billing.TaxRules.lambda$apply$3", "java.util.HashMap.getNode", "java.util.stream.ReferencePipeline$3$1.accept",
	];
	const depth = 2 + Math.floor(random() * (names.length - 1));
	const java = frames("java", "billing.jar", ...names.slice(0, depth));
	return random() < 0.2 ? [...java, ...pick(random, SYSCALLS)] : java;
}

export function realisticProfile(): RawProfile {
	const random = randomNumbers(7);
	const writer = new ProfileWriter();
	writer.raw.session = {
		title: "web-7, one minute of load", host: "web-7.example.org", start: "2026-11-21T10:00:00Z",
		end: "2026-11-21T10:01:00Z", duration_s: 60, rate_hz: 99, event: "cpu-clock", cpus: 8,
		kernel: "6.1.0-26-amd64", version: "0.1.0", command: "cairn record -a -F 99 --duration 60", samples: 31877, lost: 42,
		cut: [{ reason: "no unwind rows", samples: 513 }, { reason: "unreadable memory", samples: 57 }],
		notes: ["CPU 3 was throttled for 1.2 s", "pid 4711 ended before its objects could be read"],
	};
	const make: [string, number, number[], (random: Random) => RawFrame[]][] = [
		["store", 900, [1201, 1202, 1203], cppStack],
		["gunicorn", 700, [2210, 2211, 2212, 2213, 2214, 2215], pythonStack],
		["billing", 250, [3300], javaStack],
		["nginx", 90, [801, 802], (r) => [...frames("native", "nginx", "main", "ngx_master_process_cycle", "ngx_worker_process_cycle", "ngx_process_events_and_timers", "ngx_epoll_process_events"), ...pick(r, SYSCALLS)]],
		["sed", 40, Array.from({ length: 30 }, (_, i) => 9000 + i * 3), (r) => [...frames("native", "sed", "main", "process_files", "execute_program"), ...frames("native", LIBC, "re_search_internal", "sift_states_backward").slice(0, Math.floor(r() * 3))]],
		["swapper", 60, [0], () => frames("kernel", "vmlinux", "secondary_startup_64_no_verify", "cpu_startup_entry", "do_idle", "cpuidle_idle_call", "intel_idle")],
	];
	for (const [name, count, pids, stack] of make)
		for (let i = 0; i < count; i++)
			writer.sample(writer.process(pick(random, pids), name), stack(random), 1 + Math.floor(random() ** 3 * 50));
	const { session, samples } = writer.raw;
	session.samples = samples.value.reduce((sum, value) => sum + value, 0);
	return writer.raw;
}

/* A profile whose tree has about NODES nodes: mostly narrow and deep, with a few broad roads, as real ones are. */
export function bigProfile(nodes: number): RawProfile {
	const random = randomNumbers(3);
	const writer = new ProfileWriter();
	writer.raw.session = { title: `${nodes} nodes`, host: "bench", rate_hz: 99 };
	const { stacks, samples } = writer.raw;
	const kinds = ["kernel", "native", "python", "java", "cut"];
	const ids = Array.from({ length: 12000 }, (_, i) => writer.frame({
		name: i % 4 === 0 ? `ns${i % 37}::Type${i % 91}<std::vector<int>>::method_${i}(char const*, unsigned long)` : `function_${i}`,
		kind: kinds[i % 50 === 0 ? 4 : i % 4]!, object: `lib${i % 60}.so`, file: `/src/part${i % 200}.c`, line: i,
	}));
	const processes = Array.from({ length: 40 }, (_, i) => writer.process(1000 + i, `program-${i % 25}`));
	const owner: number[] = [];
	const depth: number[] = [];
	const seen = new Set<number>();
	while (stacks.frame.length < nodes - 70) {
		// The parent is a recent stack (deep towers) or any stack (broad trees).
		const count = stacks.frame.length;
		const parent = count < 200 ? -1 : Math.floor(random() < 0.6 ? count - 1 - random() * 60 : random() * count);
		const frame = ids[Math.floor(random() ** 2 * ids.length)]!;
		const key = (parent + 1) * 16384 + frame;
		if (seen.has(key) || (parent >= 0 && depth[parent]! > 120))
			continue;
		seen.add(key);
		stacks.parent.push(parent);
		stacks.frame.push(frame);
		depth.push(parent < 0 ? 0 : depth[parent]! + 1);
		owner.push(parent < 0 ? processes[Math.floor(random() * processes.length)]! : owner[parent]!);
		samples.stack.push(count);
		samples.process.push(owner[count]!);
		samples.value.push(1 + Math.floor(random() ** 8 * 400));
	}
	return writer.raw;
}

/* What cairn writes: PAGE with the profile in the place of the marker. */
export function writePage(page: string, profile: unknown): string {
	const [before, after] = page.split("@CAIRN_PROFILE@") as [string, string];
	const json = typeof profile === "string" ? profile : JSON.stringify(profile);
	const safe = json.replace(/[<\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
	return before + safe + after;
}
