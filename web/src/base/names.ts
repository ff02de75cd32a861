/** Shortens C++ signatures, hashes names to colours, and classifies the work of a name. */
import { visible } from "./text";

/** Nobody sees more of a name on the canvas. */
const LONGEST = 600;
const RETURN = /^(?:void|int|bool|float|double|auto|std::enable_if<.*?>::type)\s+/;

/** `void at::native::reduce_kernel<512, 1>(T)` is `reduce_kernel<512, 1>` where there is room, see `shortest`. */
export function short(text: string): string {
  const line = visible(text, LONGEST);
  if (!line.includes("::") && !line.includes("(") && !RETURN.test(line)) return line;
  const bare = line.replace(RETURN, "").replaceAll("(anonymous namespace)::", "");
  // Cut the arguments and the namespaces before the name, but nothing within < >.
  let depth = 0;
  let from = 0;
  let to = bare.length;
  for (let at = 0; at < bare.length; at += 1) {
    const letter = bare[at]!;
    if (letter === "<") depth += 1;
    else if (letter === ">" && bare[at - 1] !== "-") depth -= 1;
    else if (depth === 0 && letter === "(" && at > from && !bare.startsWith("operator", from)) {
      to = at;
      break;
    } else if (depth === 0 && letter === ":" && bare[at + 1] === ":") {
      from = at + 2;
      at += 1;
    } else if (depth === 0 && letter === " ") break;
  }
  // Python's `file.py(12): name` and sentences are no signatures.
  if (/[.](py|pyx|cpp|c|cc|cu)$/.test(bare.slice(from, to))) return line;
  const name = bare.slice(from, to);
  return name === "" ? line : name;
}

/** The short form without what is between < >, and of calls of CUDA without what all of them begin with. */
export function shortest(text: string): string {
  const name = short(text);
  const at = name.indexOf("<");
  const bare = at > 1 && !name.startsWith("operator") ? name.slice(0, at) : name;
  return /^(?:cuda|cu|hip)[A-Z]\w+$/.test(bare) ? bare.replace(/^(?:cuda|cu|hip)/, "") : bare;
}

/** The key of `CanvasTheme.states` in "blocked: io" or "GIL hold". */
export function stateOf(text: string): string {
  return text.replace(/^GIL /, "").replace(/[^a-z].*$/, "");
}

/** What gives a name its colour: numbered steps and calls look alike, but numbers in the name of a kernel say which one it is. */
export function alike(layer: string, text: string): string {
  return layer === "kernels" || layer === "graphs" ? text : text.replace(/\d+/g, "#");
}

/** FNV-1a of the text. */
export function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return (value ^ (value >>> 15)) >>> 0;
}

/** What an event is, for colours by category; the keys of `CanvasTheme.kinds`. */
export function kindOf(layer: string, name: string): string {
  switch (layer) {
    case "kernels":
    case "graphs":
      return /nccl|rccl|msccl|nvshmem|all_?reduce|all_?gather|reduce_?scatter|send_?recv|broadcast/i.test(name) ? "communication" : "compute";
    case "memcpys":
      if (/HtoD|host to device/i.test(name)) return "to device";
      if (/DtoH|device to host/i.test(name)) return "to host";
      return "on device";
    case "memsets":
      return "set";
    case "syncs":
      return "wait";
    case "cuda_api":
      if (/synchronize|query|wait/i.test(name)) return "wait";
      if (/launch|graph/i.test(name)) return "launch";
      return /mem|alloc|free/i.test(name) ? "memory" : "other";
    case "collectives":
    case "mpi_events":
      return "communication";
    case "um_events":
      return "memory";
    case "gc":
    case "gil":
    case "python_calls":
    case "task_samples":
    case "imports":
      return "python";
    case "osrt":
    case "syscalls":
    case "overhead":
      return "system";
    default:
      return layer.startsWith("nvtx") ? "range" : "other";
  }
}
