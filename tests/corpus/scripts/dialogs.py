"""A desktop program by Qt, without a screen, that shows an order in a dialog and closes it. The dialog is deleted then, or stays a child
of the window, hidden."""
import random
import sys

from PyQt5.QtCore import QTimer, Qt
from PyQt5.QtWidgets import QApplication, QDialog, QFormLayout, QLabel, QLineEdit, QMainWindow, QTableWidget, QTableWidgetItem

form, seed = sys.argv[1], int(sys.argv[2])
app = QApplication(["orders"])
window = QMainWindow()
window.setCentralWidget(QLabel("Orders"))
window.show()


def show_order():
    dialog = QDialog(window)
    if form == "steady":
        dialog.setAttribute(Qt.WA_DeleteOnClose)
    layout = QFormLayout(dialog)
    for name in ("number", "customer", "city"):
        layout.addRow(name, QLineEdit(f"{name} {random.randrange(10**6)}"))
    lines = QTableWidget(random.randrange(3, 20), 4)
    for row in range(lines.rowCount()):
        for column in range(4):
            lines.setItem(row, column, QTableWidgetItem(f"{random.randrange(10**6)}"))
    layout.addRow(lines)
    dialog.show()
    QTimer.singleShot(150, dialog.close)
    QTimer.singleShot(int(500 * (0.8 + 0.2 * seed) * random.uniform(0.5, 1.5)), show_order)


QTimer.singleShot(0, show_order)
app.exec_()
