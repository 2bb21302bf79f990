def rectangle_area(width: int, height: int) -> int:
    return width * height
