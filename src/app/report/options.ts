/** The options of report-run. */
export interface ReportOptions {
  failures: string | undefined
  stats: string | undefined
  trace: string | undefined
  json: boolean
  html: string | undefined
  readSize: number | undefined
}
