/** Example queries: each names its table, so that only those with an answer are offered. */

export interface Example {
  title: string;
  table: string;
  text: string;
}

export const EXAMPLES: Example[] = [
  {
    title: "Longest kernels",
    table: "kernels",
    text: 'SELECT name, "end" - start AS "duration (ns)", start, "end", id\nFROM kernels\nORDER BY 2 DESC\nLIMIT 100',
  },
  {
    title: "Time by kernel",
    table: "kernels",
    text: 'SELECT name, count(*) AS launches, sum("end" - start) AS "total (ns)", avg("end" - start) AS "mean (ns)"\nFROM kernels\nGROUP BY name\nORDER BY 3 DESC',
  },
  {
    title: "Gaps between kernels of a stream",
    table: "kernels",
    text: 'SELECT start - lag("end") OVER (PARTITION BY process, device, stream ORDER BY start) AS "gap (ns)", name, start, "end", id\nFROM kernels\nORDER BY 1 DESC NULLS LAST\nLIMIT 100',
  },
  {
    title: "Longest NVTX ranges",
    table: "nvtx_ranges",
    text: 'SELECT message, "end" - start AS "duration (ns)", start, "end", id\nFROM nvtx_ranges\nORDER BY 2 DESC\nLIMIT 100',
  },
  {
    title: "Slowest CUDA calls",
    table: "cuda_api",
    text: 'SELECT name, "end" - start AS "duration (ns)", thread, start, "end", id\nFROM cuda_api\nORDER BY 2 DESC\nLIMIT 100',
  },
  {
    title: "Copies by size",
    table: "memcpys",
    text: 'SELECT kind, bytes, "end" - start AS "duration (ns)", start, "end", id\nFROM memcpys\nORDER BY bytes DESC\nLIMIT 100',
  },
  {
    title: "Where threads waited",
    table: "thread_states",
    text: 'SELECT state, thread, count(*) AS times, sum("end" - start) AS "total (ns)"\nFROM thread_states\nGROUP BY ALL\nORDER BY 4 DESC\nLIMIT 100',
  },
  {
    title: "Slowest operating-system calls",
    table: "osrt",
    text: 'SELECT name, "end" - start AS "duration (ns)", thread, start, "end", id\nFROM osrt\nORDER BY 2 DESC\nLIMIT 100',
  },
  {
    title: "Processes",
    table: "processes",
    text: "SELECT *\nFROM processes",
  },
];

/** Lists the tables with rows and their columns. */
export const LISTING = "SELECT table_name, column_name, data_type FROM information_schema.columns ORDER BY table_name, ordinal_position";
