class Shape {
public:
  virtual double area() const { return 0; }
};

class Disk : public Shape {
public:
  double area() const override;
};
