"""`mpisec report`: one page that stands alone, and plots, of result files of `mpisec bench` (docs/report.md).

reading.py reads and checks, papers.py holds what others measured, measures.py groups and compares, summary.py
says it in sentences, figures.py decides what is drawn, with crypto_figures.py, pair_figures.py and beside_papers.py,
drawing.py and svg.py draw it, tables.py and page.py write the page.
"""
