"""The board as a folder of plain files: readable without a server, from a disk or any static host."""
