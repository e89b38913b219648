/** The few parts of the chart library that are used; its own types want a browser's. */
export interface Plot {
  plot(options: object): { outerHTML: string; setAttribute(name: string, value: string): void }
  rectY(data: readonly object[], options: object): object
  areaY(data: readonly object[], options: object): object
  lineY(data: readonly object[], options: object): object
  barX(data: readonly object[], options: object): object
  dot(data: readonly object[], options: object): object
  text(data: readonly object[], options: object): object
  ruleY(data: readonly number[], options?: object): object
}

/** The one importer of Observable Plot and of linkedom, the document that it draws in; loaded late. */
export async function loadPlot(): Promise<{ plot: Plot; document: object }> {
  // Names that the compiler does not follow: the types of both need the types of a browser.
  const names: string[] = ['@observablehq/plot', 'linkedom']
  const [plot, dom] = (await Promise.all(names.map((name) => import(name)))) as [
    Plot,
    { parseHTML(html: string): { document: object } },
  ]
  return { plot, document: dom.parseHTML('<!doctype html><html></html>').document }
}
